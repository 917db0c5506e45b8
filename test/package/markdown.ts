import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/ensure-built.js';

/** What users read: the front page, and a page for each topic. */
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
  /** What it prints: the text block right after it. */
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
      prints: isOutput ? next[2] : undefined,
    };
  });
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
