import type ts from 'typescript';
import { type MovedSource } from './moved-source.js';
import { SourceEdits } from './source-edits.js';
import { throttlerPackage, parse } from './survey.js';

/** The text with the names that it now needs, and without those that nothing uses any more. */
export function withImports(moved: MovedSource, text: string): string {
  const { ts } = moved;
  const source = parse(ts, moved.source.fileName, text);
  const used = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) return;
    if (ts.isIdentifier(node)) used.add(node.text);
    ts.forEachChild(node, visit);
  };
  visit(source);
  const edits = new SourceEdits(text);
  const added = [...moved.needs].filter(([from]) => from !== '@nestjs/common');
  const fresh = added.map(([from, names]) =>
    importLine(moved, [...names].sort(byName), from, text),
  );
  let isPlaced = fresh.length === 0;
  for (const statement of source.statements) {
    if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier))
      continue;
    const bindings = statement.importClause?.namedBindings;
    if (bindings === undefined || !ts.isNamedImports(bindings)) continue;
    const isThrottlers = throttlerPackage(ts, statement.moduleSpecifier) !== undefined;
    const { text: from } = statement.moduleSpecifier;
    const more = from === '@nestjs/common' ? [...(moved.needs.get(from) ?? [])] : [];
    const kept = bindings.elements.filter(({ name }) => {
      return used.has(name.text) || (!isThrottlers && !moved.orphans.has(name.text));
    });
    const has = new Set(kept.map(({ name }) => name.text));
    const missing = more.filter((name) => !has.has(name));
    const isSame = kept.length === bindings.elements.length && missing.length === 0;
    const lines = isThrottlers && !isPlaced ? fresh : [];
    isPlaced ||= isThrottlers;
    if (isSame && lines.length === 0) continue;
    const names = [...kept.map((one) => one.getText(source)), ...missing];
    const own = isSame
      ? [statement.getText(source)]
      : names.length === 0
        ? []
        : [importLine(moved, names, from, text)];
    const all = [...own, ...lines];
    if (all.length === 0) edits.remove(statement.getStart(source), statement.getEnd());
    else edits.replace(statement.getStart(source), statement.getEnd(), all.join('\n'));
  }
  const written = edits.apply();
  return isPlaced ? written : `${fresh.join('\n')}\n${written}`;
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
