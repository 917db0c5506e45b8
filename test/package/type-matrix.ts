import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { root } from '../setup/ensure-built.js';

const types = fileURLToPath(new URL('./types/', import.meta.url));

/** How a compiler finds modules, and so which of the package's types it reads. */
export type Resolution = 'node10' | 'node16' | 'bundler';

const RESOLUTIONS: Record<Resolution, ts.CompilerOptions & { extensions: readonly string[] }> = {
  node10: {
    module: ts.ModuleKind.CommonJS,
    moduleResolution: ts.ModuleResolutionKind.Node10,
    ignoreDeprecations: '6.0',
    extensions: ['.ts'],
  },
  // A file of each kind: they read other conditions of `exports`.
  node16: {
    module: ts.ModuleKind.Node20,
    moduleResolution: ts.ModuleResolutionKind.Node16,
    extensions: ['.mts', '.cts'],
  },
  bundler: {
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    extensions: ['.ts'],
  },
};

/**
 * The errors of the compiler, without `skipLibCheck`, in files of test/package/types in an application and in the package's own
 * types. Types of others are read, and not judged.
 */
export function typeFaults(
  app: string,
  names: readonly string[],
  resolution: Resolution,
  more: ts.CompilerOptions = {},
): string[] {
  const { extensions, ...ways } = RESOLUTIONS[resolution];
  const roots = names.flatMap((name) =>
    extensions.map((extension) => {
      const file = join(app, name + extension);
      copyFileSync(join(types, `${name}.ts`), file);
      return file;
    }),
  );
  const options: ts.CompilerOptions = {
    ...{ target: ts.ScriptTarget.ES2022, lib: ['lib.es2023.d.ts'], strict: true, noEmit: true },
    ...{ types: ['node'], typeRoots: [join(root, 'node_modules/@types')] },
    ...{ skipLibCheck: false, experimentalDecorators: true },
    ...ways,
    ...more,
  };
  const program = ts.createProgram(roots, options, hostOf(options));
  const ours = join(app, 'node_modules/nestjs-weir/');
  const judged = program
    .getSourceFiles()
    .filter(({ fileName }) => roots.includes(fileName) || fileName.startsWith(ours));
  const faults = [
    ...program.getOptionsDiagnostics(),
    ...program.getGlobalDiagnostics(),
    ...judged.flatMap((file) => [
      ...program.getSyntacticDiagnostics(file),
      ...program.getSemanticDiagnostics(file),
    ]),
  ];
  return faults.map(({ file, start = 0, messageText }) => {
    const text = ts.flattenDiagnosticMessageText(messageText, '\n');
    if (file === undefined) return text;
    const line = file.getLineAndCharacterOfPosition(start).line + 1;
    return `${file.fileName.replace(app, '')}:${line}: ${text}`;
  });
}

/** Most of the time goes into reading the types of Node, Nest and the language: once for all programs. */
const read = new Map<string, ts.SourceFile | undefined>();

function hostOf(options: ts.CompilerOptions): ts.CompilerHost {
  const host = ts.createCompilerHost(options);
  const { getSourceFile } = host;
  host.getSourceFile = (file, language, ...rest) => {
    const format = typeof language === 'object' ? language.impliedNodeFormat : undefined;
    const key = `${file} ${format}`;
    if (!read.has(key)) read.set(key, getSourceFile(file, language, ...rest));
    return read.get(key);
  };
  return host;
}
