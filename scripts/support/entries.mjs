/**
 * The entries of the package, by name, with the optional peers that each of them needs.
 *
 * To add one: write lib/NAME.ts (or lib/NAME/index.ts), add a line here, run `npm run api-report`. That writes `exports` and
 * `typesVersions` of package.json and the report of the API; the build, the compiler and the tests of the package
 * go by this list, or by the name alone.
 */
export const ENTRIES = {
  index: [],
  algorithms: [],
  config: [],
  dashboard: [],
  degradation: [],
  grpc: ['@grpc/grpc-js', '@nestjs/microservices'],
  otel: ['@opentelemetry/api'],
  prometheus: ['prom-client'],
  protection: [],
  terminus: ['@nestjs/terminus'],
  testing: [],
};

/** The fields of package.json that name the entries, in its order. */
export function entryFields() {
  const names = Object.keys(ENTRIES);
  const typesOf = (name) => [name, [`./dist-cjs/${name}.d.ts`]];
  return {
    exports: {
      ...Object.fromEntries(
        names.map((name) => [name === 'index' ? '.' : `./${name}`, waysTo(name)]),
      ),
      './schema.json': './schema/weir.schema.json',
      './package.json': './package.json',
    },
    // For compilers that do not read `exports`.
    typesVersions: {
      '*': Object.fromEntries(names.filter((name) => name !== 'index').map(typesOf)),
    },
  };
}

function waysTo(name) {
  const files = (folder) => ({
    types: `./${folder}/${name}.d.ts`,
    default: `./${folder}/${name}.js`,
  });
  return { import: files('dist'), require: files('dist-cjs') };
}
