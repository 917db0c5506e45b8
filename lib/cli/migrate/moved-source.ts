import type ts from 'typescript';
import { constNames } from './option-consts.js';
import { dedent, indentAt, indentOf, SourceEdits } from './source-edits.js';
import { lineOf, throttlerNames, type Survey, type Ts } from './survey.js';

/** A place that only a person can move over. */
export interface Finding {
  readonly line: number;
  readonly text: string;
  /** The page and the heading that have more of it. */
  readonly page: string;
}

/** The same with its place in the source; `mark` stands beside it in what was written in its stead. */
interface PlacedFinding extends Finding {
  readonly position: number;
  readonly mark: string | undefined;
}

/** Where each word of the throttler has its counterpart. */
export const WORDS = 'docs/migrating-from-throttler.md#word-by-word';
export const UNKNOWN = 'docs/throttler-differences.md#figures';
export const ADD_UP = 'docs/throttler-differences.md#decorators-add-up';
export const NOT_BLOCKED = 'docs/throttler-differences.md#nobody-is-blocked';
export const ANSWERS = 'docs/throttler-differences.md#answers';
export const HEADERS = 'docs/throttler-differences.md#headers';

export const OWN_GUARD =
  'this guard has no counterpart: what it overrides becomes key, skipIf and rejection; then delete it and its provider';

/** A source that is being moved over: what is known of it, what is to change, and what a person is told. */
export class MovedSource {
  readonly findings: PlacedFinding[] = [];
  readonly names: ReadonlyMap<string, string>;
  readonly edits: SourceEdits;
  /** Names to import, by package. */
  readonly needs = new Map<string, Set<string>>();
  /** Code that a person has to write anew, and that stays as a comment until then. */
  keptCode = '';
  /** Functions, classes and variables whose options have been moved: their types are ours now. */
  readonly movedOwners = new Set<ts.Node>();
  /** Elements to be taken out of their lists. */
  private readonly removed = new Map<readonly ts.Node[], Set<ts.Node>>();
  /** Nodes that a finding has told of already. */
  readonly told = new Set<ts.Node>();
  /** The indent of the file. */
  readonly indent: string;
  private readonly quote: string;

  constructor(
    readonly ts: Ts,
    readonly source: ts.SourceFile,
    readonly text: string,
    readonly project: Survey,
  ) {
    this.names = throttlerNames(ts, source);
    this.edits = new SourceEdits(text);
    this.indent = indentOf(text);
    this.quote = /from\s+"/.test(text) ? '"' : "'";
  }

  readonly isPlainGuard = (node: ts.Node | undefined): boolean =>
    node !== undefined &&
    this.ts.isIdentifier(node) &&
    (this.names.get(node.text) === 'ThrottlerGuard' || this.project.plainGuards.has(node.text));

  /** Whether it names options that are moved where they stand. */
  isMovedConst(node: ts.Node): boolean {
    const { ts, source, project } = this;
    if (!ts.isIdentifier(node) || project.consts.size === 0) return false;
    const files = new Set([...project.consts].map((key) => key.slice(0, key.lastIndexOf('#'))));
    return project.consts.has(constNames(ts, source, files).get(node.text) ?? '');
  }

  isOf(node: ts.Node, name: string): boolean {
    return this.ts.isIdentifier(node) && this.names.get(node.text) === name;
  }

  need(name: string, from = 'nestjs-weir'): string {
    const names = this.needs.get(from) ?? new Set();
    this.needs.set(from, names.add(name));
    return name;
  }

  quoted(text: string): string {
    return `${this.quote}${text}${this.quote}`;
  }

  namesOf(names: Iterable<string>): string {
    return [...names].map((name) => this.quoted(name)).join(', ');
  }

  /** Tells a person of a node, once. */
  find(node: ts.Node, text: string, page = WORDS, mark?: string): void {
    const position = node.getStart(this.source);
    const line = lineOf(this.source, position);
    if (this.findings.some((one) => one.line === line && one.text === text)) return;
    // Only its first line is there as it was, without an indent.
    this.findings.push({ line, text, page, position, mark: mark?.split('\n')[0] });
  }

  /** A node as it stands, as if its line had no indent. */
  textOf(node: ts.Node): string {
    return dedent(node.getText(), indentAt(this.text, node.getStart()));
  }

  /** Code that has no counterpart, as a comment for the person who writes it anew. */
  keep(node: ts.Node): string {
    const text = this.textOf(node);
    this.keptCode += `${text}\n`;
    return `// weir: ${text.replaceAll('\n', '\n// ')}`;
  }

  /** An element of a list, with its comma; the last of `providers: […]` with the field. */
  removeElement(node: ts.Expression): void {
    const { ts } = this;
    const list = node.parent as ts.ArrayLiteralExpression;
    const field = list.parent;
    const isAlone = list.elements.length === 1 && ts.isPropertyAssignment(field);
    if (!isAlone) return this.removeOf(list.elements, node);
    this.removeOf(field.parent.properties, field);
  }

  private removeOf(all: readonly ts.Node[], node: ts.Node): void {
    const removed = this.removed.get(all) ?? new Set();
    this.removed.set(all, removed.add(node));
  }

  /** Takes what was removed out of its lists: neighbours together, with the commas between them. */
  closeLists(): void {
    for (const [all, removed] of this.removed) {
      for (const [index, node] of all.entries()) {
        if (!removed.has(node) || removed.has(all[index - 1]!)) continue;
        const next = all.findIndex((one, i) => i > index && !removed.has(one));
        const [before, after] = [all[index - 1], all[next]];
        const end = (next === -1 ? all.at(-1)! : all[next - 1]!).getEnd();
        if (after !== undefined) this.edits.replace(this.startOf(node), this.startOf(after), '');
        else this.edits.replace(before?.getEnd() ?? node.getStart(), end, '');
      }
    }
    this.removed.clear();
  }

  /** With the comments above it. */
  private startOf(node: ts.Node): number {
    const comments = this.ts.getLeadingCommentRanges(this.text, node.getFullStart());
    return comments?.[0]?.pos ?? node.getStart();
  }
}
