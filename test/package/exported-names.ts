import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { root } from '../setup/ensure-built.js';

/** A name that an entry exports, and what its comment says. */
export interface ExportedName {
  readonly name: string;
  /** Where it is declared, from the root. */
  readonly file: string;
  readonly sentence: string;
}

const parsed = new Map<string, ts.SourceFile>();

export function parseSource(file: string): ts.SourceFile {
  let source = parsed.get(file);
  if (source === undefined) {
    const text = readFileSync(join(root, file), 'utf8');
    source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
    parsed.set(file, source);
  }
  return source;
}

/** The names that a file exports, by the file that declares each: found in the syntax, without a program. */
export function exportedNames(file: string): ExportedName[] {
  return parseSource(file).statements.flatMap((statement) => {
    if (ts.isExportDeclaration(statement) && statement.moduleSpecifier !== undefined) {
      const { text } = statement.moduleSpecifier as ts.StringLiteral;
      const from = join(dirname(file), text.replace(/\.js$/, '.ts'));
      const all = exportedNames(from);
      const { exportClause } = statement;
      if (exportClause === undefined || !ts.isNamedExports(exportClause)) return all;
      return exportClause.elements.map(({ name, propertyName }) => {
        const found = all.find((one) => one.name === (propertyName ?? name).text);
        return { name: name.text, file: found?.file ?? from, sentence: found?.sentence ?? '' };
      });
    }
    return declaredBy(statement).map((name) => ({ name, file, sentence: sentenceOf(statement) }));
  });
}

function declaredBy(statement: ts.Statement): string[] {
  const { modifiers } = statement as { modifiers?: readonly ts.ModifierLike[] };
  if (!modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) return [];
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.map(({ name }) => name.getText());
  }
  const { name } = statement as { name?: ts.Identifier };
  return name === undefined ? [] : [name.text];
}

function sentenceOf(node: ts.Node): string {
  return ts
    .getJSDocCommentsAndTags(node)
    .filter(ts.isJSDoc)
    .map(({ comment }) => ts.getTextOfJSDocComment(comment) ?? '')
    .join(' ')
    .trim();
}

/** The members of a class or an interface, with the text of their initial values. */
export function membersOf(file: string, name: string): Map<string, string | undefined> {
  const found = parseSource(file).statements.find(
    (one) =>
      (ts.isClassDeclaration(one) || ts.isInterfaceDeclaration(one)) && one.name?.text === name,
  ) as ts.ClassDeclaration | ts.InterfaceDeclaration | undefined;
  if (found === undefined) throw new Error(`${file} has no ${name}`);
  return new Map(
    [...found.members].flatMap((member) => {
      const isField = ts.isPropertyDeclaration(member) || ts.isPropertySignature(member);
      if (!isField || member.getFullText().includes('@internal')) return [];
      const value = ts.isPropertyDeclaration(member) ? member.initializer?.getText() : undefined;
      return [[member.name.getText(), value] as const];
    }),
  );
}
