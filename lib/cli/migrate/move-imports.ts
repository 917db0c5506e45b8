import type ts from 'typescript';
import { type MovedSource } from './moved-source.js';
import { SourceEdits } from './source-edits.js';
import { parse, throttlerPackage, type Ts } from './survey.js';

/** The text with the names that it now needs, and without those that nothing uses any more. */
export function withImports(moved: MovedSource, text: string): SourceEdits {
  const { ts } = moved;
  const source = parse(ts, moved.source.fileName, text);
  const [usedBefore, used] = [namesIn(ts, moved.source), namesIn(ts, source)];
  /** Whether it has served nothing but what was moved. */
  const isIdle = ({ text: name }: ts.Identifier): boolean =>
    usedBefore.has(name) && !used.has(name) && !new RegExp(`\\b${name}\\b`).test(moved.keptCode);
  const edits = new SourceEdits(text);
  const added = [...moved.needs].filter(([from]) => from !== '@nestjs/common');
  const fresh = added.map(([from, names]) =>
    importLine(moved, [...names].sort(byName), from, text),
  );
  let isPlaced = fresh.length === 0;
  for (const statement of source.statements) {
    const single = ts.isImportEqualsDeclaration(statement)
      ? statement.name
      : ts.isImportDeclaration(statement) && statement.importClause?.namedBindings === undefined
        ? statement.importClause?.name
        : undefined;
    if (single !== undefined && isIdle(single)) {
      edits.remove(statement.getStart(source), statement.getEnd());
    }
    if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier))
      continue;
    const bindings = statement.importClause?.namedBindings;
    if (bindings === undefined || !ts.isNamedImports(bindings)) continue;
    const isThrottlers = throttlerPackage(ts, statement.moduleSpecifier) !== undefined;
    const { text: from } = statement.moduleSpecifier;
    const more = from === '@nestjs/common' ? [...(moved.needs.get(from) ?? [])] : [];
    const kept = bindings.elements.filter(({ name }) =>
      isThrottlers ? used.has(name.text) : !isIdle(name),
    );
    const has = new Set(kept.map(({ name }) => name.text));
    const missing = more.filter((name) => !has.has(name));
    const isSame = kept.length === bindings.elements.length && missing.length === 0;
    const lines = isThrottlers && !isPlaced ? fresh : [];
    isPlaced ||= isThrottlers;
    if (isSame && lines.length === 0) continue;
    const names = [...kept.map((one) => one.getText(source)), ...missing];
    const [start, end] = [statement.getStart(source), statement.getEnd()];
    // As it was but for the names: `import type`, and a default beside them.
    const rest = [text.slice(start, bindings.getStart(source)), text.slice(bindings.getEnd(), end)];
    const isLeft = names.length > 0 || statement.importClause?.name !== undefined;
    const own = isSame
      ? [text.slice(start, end)]
      : isLeft
        ? [rest.join(`{ ${names.join(', ')} }`)]
        : [];
    const all = [...own, ...lines];
    if (all.length === 0) edits.remove(start, end);
    else edits.replace(start, end, all.join('\n'));
  }
  if (!isPlaced) edits.replace(0, 0, `${fresh.join('\n')}\n`);
  return edits;
}

function namesIn(ts: Ts, source: ts.SourceFile): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) || ts.isImportEqualsDeclaration(node)) return;
    if (ts.isIdentifier(node)) names.add(node.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  return names;
}

function importLine(
  moved: MovedSource,
  names: readonly string[],
  from: string,
  text: string,
): string {
  const end = /from\s+['"][^'"]+['"];/.test(text) ? ';' : '';
  return `import { ${names.join(', ')} } from ${moved.quoted(from)}${end}`;
}

const byName = (one: string, other: string): number => (one < other ? -1 : 1);
