import { join } from 'node:path';
import ts from 'typescript';
import { root } from '../setup/ensure-built.js';

const options = compilerOptions();
/** Declarations of the library and of others, which are the same for every program. */
const parsed = new Map<string, ts.SourceFile | undefined>();

/** Checks codes as if each were a file of that name in the root. */
export function typeErrors(files: ReadonlyMap<string, string>): string[] {
  const codes = new Map([...files].map(([name, code]) => [join(root, name), code]));
  const host = ts.createCompilerHost(options);
  const { fileExists, readFile, getSourceFile } = host;
  host.fileExists = (path) => codes.has(path) || fileExists(path);
  host.readFile = (path) => codes.get(path) ?? readFile(path);
  host.getSourceFile = (path, ...rest) => {
    const code = codes.get(path);
    if (code === undefined) {
      if (!parsed.has(path)) parsed.set(path, getSourceFile(path, ...rest));
      return parsed.get(path);
    }
    return ts.createSourceFile(path, code, rest[0], true);
  };
  const program = ts.createProgram([...codes.keys()], options, host);
  return [...codes.keys()].flatMap((path) =>
    ts.getPreEmitDiagnostics(program, program.getSourceFile(path)).map((diagnostic) => {
      const text = ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n');
      return `${path.slice(root.length + 1)}: ${text}`;
    }),
  );
}

export function toJavaScript(code: string): string {
  const esm = { ...options, module: ts.ModuleKind.ESNext, sourceMap: false, noEmit: false };
  return ts.transpileModule(code, { compilerOptions: esm }).outputText;
}

function compilerOptions(): ts.CompilerOptions {
  const file = join(root, 'tsconfig.json');
  const { config } = ts.readConfigFile(file, (path) => ts.sys.readFile(path)) as { config: object };
  const parsed = ts.parseJsonConfigFileContent({ ...config, files: [], include: [] }, ts.sys, root);
  return parsed.options;
}
