import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/ensure-built.js';

/** Pages for users: the front page, and a page for each topic. */
export const PAGES: readonly string[] = [
  'README.md',
  ...readdirSync(join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

export function readPage(page: string): string {
  return readFileSync(join(root, page), 'utf8');
}

/** A code block of a page. */
export interface Block {
  /** The line of the page on which the code starts. */
  readonly line: number;
  readonly code: string;
  /** Marked by a comment `<!-- run -->` before it. */
  readonly runs: boolean;
  /** Marked by a comment `<!-- test -->` before it: calls `it`, as in Jest and Vitest. */
  readonly isTest: boolean;
  /** The output of the block: the text block right after it. */
  readonly prints: string | undefined;
}

const FENCED = /^```(\w*)\n([\s\S]*?)^```$/gm;

export function typescriptBlocks(markdown: string): Block[] {
  const fences = [...markdown.matchAll(FENCED)];
  return fences.flatMap((fence, index) => {
    const [, language, code = ''] = fence;
    if (language !== 'ts') return [];
    const before = markdown.slice(0, fence.index);
    const next = fences[index + 1];
    const between = next && markdown.slice(fence.index + fence[0].length, next.index);
    const isOutput = next?.[1] === 'text' && between?.trim() === '';
    return {
      line: before.split('\n').length + 1,
      code,
      runs: before.trimEnd().endsWith('<!-- run -->'),
      isTest: before.trimEnd().endsWith('<!-- test -->'),
      prints: isOutput ? next[2] : undefined,
    };
  });
}

/** Every code block of a page, of any language, also in lists. */
export function blocksOf(markdown: string): { language: string; code: string }[] {
  return [...markdown.matchAll(/^( *)```(\w*)\n([\s\S]*?)^\1```$/gm)].map(
    ([, , language = '', code = '']) => ({ language, code }),
  );
}

/** A table, and the heading that it stands below. */
export interface Table {
  readonly heading: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export function tablesOf(markdown: string): Table[] {
  const tables: Table[] = [];
  let heading = '';
  for (const text of withoutBlocks(markdown).split(/\n(?=#)|\n\n/)) {
    heading = /^#+ (.*)/.exec(text)?.[1] ?? heading;
    const lines = text.split('\n').filter((line) => line.startsWith('|'));
    if (lines.length < 3) continue;
    const cells = lines.map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
    tables.push({ heading, head: cells[0]!, rows: cells.slice(2) });
  }
  return tables;
}

/** The prose and the tables of a page. */
export function withoutBlocks(markdown: string): string {
  return markdown.replace(/^( *)```[\s\S]*?^\1```$/gm, '');
}

/** The rows of the first table below a heading, by their first cell, without its backticks. */
export function tableBelow(markdown: string, heading: string): Map<string, string[]> {
  const section = markdown.split(/^#+ /m).find((text) => text.startsWith(`${heading}\n`)) ?? '';
  const lines = section.split('\n');
  const first = lines.findIndex((line) => line.startsWith('|'));
  const rest = lines.slice(first);
  const end = rest.findIndex((line) => !line.startsWith('|'));
  const rows = rest.slice(2, end).map((line) => line.split('|').slice(1, -1));
  return new Map(
    rows.map((row) => {
      const [name = '', ...cells] = row.map((cell) => cell.trim());
      return [name.replaceAll('`', ''), cells];
    }),
  );
}
