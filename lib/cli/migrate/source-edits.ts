interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Changes of a text by position. Everything that is not changed stays as it was written. */
export class SourceEdits {
  private readonly edits: Edit[] = [];

  constructor(readonly source: string) {}

  get isEmpty(): boolean {
    return this.edits.length === 0;
  }

  replace(start: number, end: number, text: string): void {
    this.edits.push({ start, end, text });
  }

  /** The line as well, if nothing else stands on it. */
  remove(start: number, end: number): void {
    const { source } = this;
    const lineStart = source.lastIndexOf('\n', start - 1) + 1;
    const lineEnd = source.indexOf('\n', end);
    const isAlone =
      source.slice(lineStart, start).trim() === '' &&
      source.slice(end, lineEnd === -1 ? source.length : lineEnd).trim() === '';
    if (isAlone) this.replace(lineStart, lineEnd === -1 ? source.length : lineEnd + 1, '');
    else this.replace(start, skipSpaces(source, end), '');
  }

  /** Whether a place lies in what is replaced. */
  covers(position: number): boolean {
    return this.edits.some(({ start, end }) => position >= start && position < end);
  }

  apply(): string {
    let [text, at] = ['', 0];
    for (const { start, end, text: added } of this.outermost()) {
      text += this.source.slice(at, start) + added;
      at = end;
    }
    return text + this.source.slice(at);
  }

  /** Where a place of the source is afterwards. Of one that was replaced, where `mark` is in its stead, or the beginning. */
  positionAfter(position: number, mark?: string): number {
    let moved = 0;
    for (const { start, end, text } of this.outermost()) {
      if (end > position && start <= position) {
        return start + moved + Math.max(0, mark === undefined ? 0 : text.indexOf(mark));
      }
      if (start > position) break;
      moved += text.length - (end - start);
    }
    return position + moved;
  }

  /** The outer one of two changes of the same place holds. */
  private outermost(): Edit[] {
    const inOrder = [...this.edits].sort((a, b) => a.start - b.start || b.end - a.end);
    let at = 0;
    return inOrder.filter(({ start, end }) => {
      if (start < at) return false;
      at = end;
      return true;
    });
  }
}

/** The white space that the line of a place begins with. */
export function indentAt(source: string, position: number): string {
  const lineStart = source.lastIndexOf('\n', position - 1) + 1;
  return /^[ \t]*/.exec(source.slice(lineStart, position))![0];
}

/** The indent of the source, as its first indented line has it. */
export function indentOf(source: string): string {
  return /^(\t| {2,8})(?=[^\s*])/m.exec(source)?.[1] ?? '  ';
}

/** A text that began on a line with this indent, as it would stand without one. What is quoted over lines stays. */
export function dedent(text: string, indent: string): string {
  return isQuotedOverLines(text) ? text : text.replaceAll(`\n${indent}`, '\n');
}

/** Lines, and what stands in one of them over several, each with this indent. */
export function indented(lines: readonly string[], indent: string): string[] {
  return lines.flatMap((line) =>
    isQuotedOverLines(line) ? [indent + line] : line.split('\n').map((one) => indent + one),
  );
}

/** Spaces at the beginning of its lines may be part of a text. */
const isQuotedOverLines = (text: string): boolean => text.replace(/`[^`\n]*`/g, '').includes('`');

function skipSpaces(source: string, position: number): number {
  let at = position;
  while (source[at] === ' ' || source[at] === '\t') at++;
  return at;
}
