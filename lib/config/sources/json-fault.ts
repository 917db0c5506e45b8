/** Where a text stops being JSON, and what should stand there. */
export interface JsonFault {
  readonly offset: number;
  readonly expected: string;
}

const SPACE = /[ \t\n\r]*/y;
const TEXT = /"(?:[ !#-[\]-\u{10ffff}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const SCALAR = new RegExp(
  `${TEXT.source}|-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][+-]?\\d+)?(?![\\w.])|(?:true|false|null)\\b`,
  'uy',
);

/** JSON.parse does not say on every Node where a text is broken; this does nothing else. */
export function jsonFault(text: string): JsonFault | undefined {
  const scan = new Scan(text);
  return scan.value() && scan.end() ? undefined : scan.fault;
}

class Scan {
  fault: JsonFault | undefined;
  private offset = 0;

  constructor(private readonly text: string) {}

  value(): boolean {
    if (this.take('{')) return this.fields();
    if (this.take('[')) return this.items();
    return this.match(SCALAR, 'a value');
  }

  end(): boolean {
    this.match(SPACE, '');
    return this.offset === this.text.length || this.miss('the end');
  }

  private fields(): boolean {
    if (this.take('}')) return true;
    do {
      if (!this.match(TEXT, 'a name in double quotes')) return false;
      if (!this.take(':')) return this.miss("':'");
      if (!this.value()) return false;
    } while (this.take(','));
    return this.take('}') || this.miss("',' or '}'");
  }

  private items(): boolean {
    if (this.take(']')) return true;
    do if (!this.value()) return false;
    while (this.take(','));
    return this.take(']') || this.miss("',' or ']'");
  }

  private take(sign: string): boolean {
    this.skip(SPACE);
    if (this.text[this.offset] !== sign) return false;
    this.offset++;
    return true;
  }

  private match(form: RegExp, expected: string): boolean {
    this.skip(SPACE);
    return this.skip(form) || this.miss(expected);
  }

  private skip(form: RegExp): boolean {
    form.lastIndex = this.offset;
    if (!form.test(this.text)) return false;
    this.offset = form.lastIndex;
    return true;
  }

  private miss(expected: string): false {
    this.fault ??= { offset: this.offset, expected };
    return false;
  }
}
