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

  /** Of two changes of the same place the outer one holds. */
  apply(): string {
    const inOrder = [...this.edits].sort((a, b) => a.start - b.start || b.end - a.end);
    let [text, at] = ['', 0];
    for (const { start, end, text: added } of inOrder) {
      if (start < at) continue;
      text += this.source.slice(at, start) + added;
      at = end;
    }
    return text + this.source.slice(at);
  }
}

/** The white space that the line of a place begins with. */
export function indentAt(source: string, position: number): string {
  const lineStart = source.lastIndexOf('\n', position - 1) + 1;
  return /^[ \t]*/.exec(source.slice(lineStart, position))![0];
}

function skipSpaces(source: string, position: number): number {
  let at = position;
  while (source[at] === ' ' || source[at] === '\t') at++;
  return at;
}
