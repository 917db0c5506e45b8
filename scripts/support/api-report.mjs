import { join } from 'node:path';
import ts from 'typescript';

/**
 * The public API, as it is published: each name that an entry exports with its declaration, and the types of the package
 * that these name and that no entry exports.
 *
 * @param {string} folder The types of the entries, one file each
 * @param {readonly string[]} entries Their names
 */
export function apiReport(folder, entries) {
  const program = ts.createProgram(
    entries.map((entry) => join(folder, `${entry}.d.ts`)),
    { noLib: true, types: [] },
    hostOf(folder),
  );
  const checker = program.getTypeChecker();
  const resolved = (symbol) =>
    symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const exportsOf = (entry) =>
    checker
      .getExportsOfModule(
        checker.getSymbolAtLocation(program.getSourceFile(join(folder, `${entry}.d.ts`))),
      )
      .map((symbol) => [symbol.name, resolved(symbol)])
      .sort(([a], [b]) => (a < b ? -1 : 1));

  /** Where a declaration stands in full. */
  const told = new Map();
  const parts = entries.map((entry) => {
    const title = entry === 'index' ? 'nestjs-weir' : `nestjs-weir/${entry}`;
    const lines = exportsOf(entry).map(([name, symbol]) => {
      if (told.has(symbol)) return `${name}: as of ${told.get(symbol)}`;
      told.set(symbol, title);
      return textOf(name, symbol);
    });
    return `# ${title}\n\n${lines.join('\n')}\n`;
  });

  const hidden = new Set();
  for (const symbol of told.keys()) {
    for (const named of symbolsIn(symbol)) {
      const isOurs = named.declarations?.some(({ parent }) => ts.isSourceFile(parent));
      if (isOurs && !told.has(named)) hidden.add(`${named.name}, of ${symbol.name}`);
    }
  }
  return { text: parts.join('\n'), hidden: [...hidden].sort() };

  /** What the types of a declaration are made of. */
  function symbolsIn(symbol) {
    const found = new Set();
    const visit = (node) => {
      if (ts.isIdentifier(node)) {
        const named = checker.getSymbolAtLocation(node);
        if (named !== undefined) found.add(resolved(named));
      }
      ts.forEachChild(node, visit);
    };
    symbol.declarations?.forEach(visit);
    return found;
  }
}

const printer = ts.createPrinter({ removeComments: true });

function textOf(name, { declarations = [] }) {
  const texts = declarations.map((declaration) => {
    // The statement of a constant has the word for it.
    const node = ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
    const file = node.getSourceFile();
    const shown = withoutPrivate(node);
    return printer.printNode(ts.EmitHint.Unspecified, shown, file).replace(/^declare /, '');
  });
  const [text = ''] = texts;
  return new RegExp(`\\b${name}\\b`).test(text) ? texts.join('\n') : `${name}: ${texts.join('\n')}`;
}

/** What a class keeps to itself is in its types all the same. */
function withoutPrivate(node) {
  if (!ts.isClassDeclaration(node)) return node;
  const { modifiers, name, typeParameters, heritageClauses, members } = node;
  const isPrivate = (member) =>
    member.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword);
  return ts.factory.updateClassDeclaration(
    node,
    modifiers,
    name,
    typeParameters,
    heritageClauses,
    members.filter((member) => !isPrivate(member)),
  );
}

/** Follows the package's own files only: what others declare is not reported, and takes seconds to read. */
function hostOf(folder) {
  const host = ts.createCompilerHost({});
  host.resolveModuleNameLiterals = (literals, from) =>
    literals.map(({ text }) => {
      if (!text.startsWith('.')) return { resolvedModule: undefined };
      const resolvedFileName = join(from, '..', text.replace(/\.js$/, '.d.ts'));
      const isOurs = resolvedFileName.startsWith(folder);
      return { resolvedModule: isOurs ? { resolvedFileName, extension: '.d.ts' } : undefined };
    });
  return host;
}
