import type ts from 'typescript';
import { dedent, indentAt } from './source-edits.js';
import { type Ts } from './survey.js';

/** Comments of a list of fields or elements, whose text is about to be written anew. */
export interface ListComments {
  /** Those above each of them, and behind it on its line. */
  readonly of: ReadonlyMap<ts.Node, readonly string[]>;
  /** Those behind the last. */
  readonly rest: readonly string[];
}

export function commentsIn(
  ts: Ts,
  text: string,
  list: ts.NodeArray<ts.Node> | undefined,
): ListComments {
  const written = (ranges: readonly ts.CommentRange[] = []): string[] =>
    ranges.map(({ pos, end }) => dedent(text.slice(pos, end), indentAt(text, pos)));
  const of = new Map<ts.Node, readonly string[]>();
  for (const node of list ?? []) {
    const comma = /^\s*,/.exec(text.slice(node.getEnd()))?.[0].length ?? 0;
    const behind = [node.getEnd(), node.getEnd() + comma].flatMap((at) =>
      written(ts.getTrailingCommentRanges(text, at)),
    );
    const above = written(ts.getLeadingCommentRanges(text, node.getFullStart()));
    of.set(node, [...above, ...new Set(behind)]);
  }
  const isEmpty = list === undefined || list.length === 0;
  return { of, rest: isEmpty ? [] : written(ts.getLeadingCommentRanges(text, list.end)) };
}
