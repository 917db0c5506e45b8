// The page of the dashboard: lib/dashboard/page -> assets/dashboard, by esbuild. Names of files hold a hash of their
// content, so that browsers may keep them. They are zipped here, so that nobody zips while requests wait, and kept only
// so: no browser asks for anything else.
import { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { inRoot } from './root.mjs';

const sources = inRoot('lib/dashboard/page');

/** Files that the page shares with the library may use Node where the page does not: that is left out. */
const withoutNode = {
  name: 'without-node',
  setup({ onResolve }) {
    onResolve({ filter: /^node:/ }, ({ path }) => ({ path, external: true, sideEffects: false }));
  },
};

export async function buildDashboardPage(target = inRoot('assets/dashboard')) {
  const { outputFiles } = await build({
    entryPoints: { page: join(sources, 'main.tsx'), theme: join(sources, 'theme.ts') },
    outdir: target,
    bundle: true,
    format: 'iife',
    target: 'es2022',
    minify: true,
    jsx: 'transform',
    jsxFactory: 'h',
    jsxFragment: 'Fragment',
    inject: [join(sources, 'jsx.ts')],
    plugins: [withoutNode],
    legalComments: 'none',
    charset: 'utf8',
    write: false,
    logLevel: 'error',
    tsconfigRaw: {},
  });
  const files = outputFiles.map(({ path, contents }) => ({ name: basename(path), contents }));
  files.push({ name: 'weir.svg', contents: await readFile(join(sources, 'weir.svg')) });
  let html = await readFile(join(sources, 'index.html'), 'utf8');
  await rm(target, { recursive: true, force: true });
  await mkdir(target, { recursive: true });
  for (const { name, contents } of files) {
    const hashed = withHash(name, contents);
    html = html.replace(`"assets/${name}"`, `"assets/${hashed}"`);
    await writeZipped(join(target, hashed), contents);
  }
  await writeZipped(join(target, 'index.html'), Buffer.from(html));
}

function withHash(name, contents) {
  const hash = createHash('sha256').update(contents).digest('hex').slice(0, 10);
  const ext = extname(name);
  return `${basename(name, ext)}-${hash}${ext}`;
}

function writeZipped(path, contents) {
  return writeFile(`${path}.gz`, gzipSync(contents, { level: 9 }));
}
