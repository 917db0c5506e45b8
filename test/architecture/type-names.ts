import ts from 'typescript';
import { type SourceFile } from './import-rules.js';

interface Declaration {
  readonly path: string;
  readonly isExported: boolean;
}

/**
 * One sentence for each name that an exported type shares with a type of another file: either one idea stands
 * twice, or one word means two. Private types of two files may share a word, which nobody meets twice.
 */
export function sharedTypeNames(files: readonly SourceFile[]): string[] {
  const byName = new Map<string, Declaration[]>();
  for (const file of files) {
    for (const [name, isExported] of typesOf(file)) {
      const known = byName.get(name) ?? [];
      byName.set(name, [...known, { path: file.path, isExported }]);
    }
  }
  return [...byName].sort().flatMap(([name, declared]) => {
    const paths = [...new Set(declared.map(({ path }) => path))].sort();
    const isShared = paths.length > 1 && declared.some(({ isExported }) => isExported);
    return isShared ? [`${name}: ${paths.join(', ')}`] : [];
  });
}

/** The types of a file, those inside of functions too, and whether others can import them. */
function typesOf({ path, text }: SourceFile): [name: string, isExported: boolean][] {
  const found: [string, boolean][] = [];
  const visit = (node: ts.Node): void => {
    if (isType(node) && node.name !== undefined) {
      const words = node.modifiers ?? [];
      const isExported = words.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
      found.push([node.name.text, isExported]);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, text, ts.ScriptTarget.Latest));
  return found;
}

const isType = (
  node: ts.Node,
): node is
  | ts.TypeAliasDeclaration
  | ts.InterfaceDeclaration
  | ts.ClassDeclaration
  | ts.EnumDeclaration =>
  ts.isTypeAliasDeclaration(node) ||
  ts.isInterfaceDeclaration(node) ||
  ts.isClassDeclaration(node) ||
  ts.isEnumDeclaration(node);
