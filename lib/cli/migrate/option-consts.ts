import { posix } from 'node:path';
import type ts from 'typescript';
import { type ProjectFile } from './project.js';
import { constKey, parse, throttlerNames, type Ts } from './survey.js';

/**
 * Consts of the project that are given to `ThrottlerModule.forRoot` or `forRootAsync`, in their own file or in one
 * that imports them, and to nothing else: such a const can be moved where it stands.
 */
export function optionConsts(ts: Ts, project: readonly ProjectFile[]): Set<string> {
  const sources = project.map(({ file, text }) => parse(ts, file, text));
  const files = new Set(project.map(({ file }) => file));
  const [given, others] = [new Set<string>(), new Set<string>()];
  for (const source of sources) {
    const names = throttlerNames(ts, source);
    const known = constNames(ts, source, files);
    const visit = (node: ts.Node): void => {
      if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return;
      const key = ts.isIdentifier(node) ? known.get(node.text) : undefined;
      const isDeclared = ts.isVariableDeclaration(node.parent) && node.parent.name === node;
      if (key !== undefined && !isDeclared) (isGiven(ts, node, names) ? given : others).add(key);
      ts.forEachChild(node, visit);
    };
    ts.forEachChild(source, visit);
  }
  return new Set([...given].filter((key) => !others.has(key)));
}

/** The const that a name stands for, in this source: its own, or one of a file of the project that it imports. */
export function constNames(
  ts: Ts,
  source: ts.SourceFile,
  files: ReadonlySet<string>,
): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const statement of source.statements) {
    if (ts.isVariableStatement(statement)) {
      for (const declared of statement.declarationList.declarations) {
        names.set(declared.name.getText(), constKey(declared));
      }
    }
    if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier))
      continue;
    const bindings = statement.importClause?.namedBindings;
    const file = fileOf(source.fileName, statement.moduleSpecifier.text, files);
    if (file === undefined || bindings === undefined || !ts.isNamedImports(bindings)) continue;
    for (const { name, propertyName } of bindings.elements) {
      names.set(name.text, `${file}#${(propertyName ?? name).text}`);
    }
  }
  return names;
}

function fileOf(from: string, specifier: string, files: ReadonlySet<string>): string | undefined {
  const path = specifier.startsWith('.') ? posix.join(posix.dirname(from), specifier) : specifier;
  const stem = path.replace(/\.[cm]?[jt]s$/, '');
  return ['.ts', '.mts', '.cts', '/index.ts']
    .map((end) => stem + end)
    .find((one) => files.has(one));
}

function isGiven(ts: Ts, node: ts.Node, names: ReadonlyMap<string, string>): boolean {
  const { parent: call } = node;
  if (!ts.isCallExpression(call) || call.arguments[0] !== node) return false;
  const { expression } = call;
  if (!ts.isPropertyAccessExpression(expression)) return false;
  return names.get(expression.expression.getText()) === 'ThrottlerModule';
}
