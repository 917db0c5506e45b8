export interface RespMessage {
  readonly bytes: Buffer;
  /** A push (RESP3 `>`) comes unasked, between replies; it answers no command. */
  readonly kind: 'reply' | 'push';
}

const CRLF = '\r\n';

/**
 * Cuts a byte stream of RESP2 or RESP3 into whole replies, however it arrives in chunks. It keeps
 * one number: how many values the reply still lacks. An array of n lacks n more than itself, and
 * so on down; the reply is whole when nothing is missing, and no value is looked at twice.
 */
export class RespSplitter {
  private pending: Buffer = Buffer.alloc(0);
  private scanned = 0;
  private missing = 1;

  /** Takes the next bytes, gives the replies that are whole with them. */
  push(chunk: Buffer): RespMessage[] {
    this.pending = Buffer.concat([this.pending, chunk]);
    const messages: RespMessage[] = [];
    while (this.scanValue()) {
      if (this.missing > 0) continue;
      const bytes = this.pending.subarray(0, this.scanned);
      messages.push({ bytes, kind: bytes[0] === 0x3e ? 'push' : 'reply' });
      this.pending = this.pending.subarray(this.scanned);
      this.scanned = 0;
      this.missing = 1;
    }
    return messages;
  }

  /** Bytes of a reply that is not whole yet. */
  get pendingBytes(): number {
    return this.pending.length;
  }

  /** Moves over one value (for an aggregate: over its head). False if it is not all there yet. */
  private scanValue(): boolean {
    const lineEnd = this.pending.indexOf(CRLF, this.scanned);
    if (lineEnd < 0) return false;
    const type = String.fromCharCode(this.pending[this.scanned] ?? 0);
    const size = (): number => this.readSize(this.scanned + 1, lineEnd);
    let end = lineEnd + CRLF.length;
    let parts = 0;
    switch (type) {
      case '+':
      case '-':
      case ':':
      case '_':
      case '#':
      case ',':
      case '(':
        break;
      case '$':
      case '=':
      case '!':
        // A length of -1 is RESP2's null, which has no body.
        if (size() >= 0) end += size() + CRLF.length;
        break;
      case '*':
      case '~':
      case '>':
        parts = Math.max(0, size());
        break;
      case '%':
        parts = 2 * size();
        break;
      case '|':
        // An attribute stands before the value it belongs to, and is none itself.
        parts = 2 * size() + 1;
        break;
      default:
        throw new Error(`no RESP type begins with ${JSON.stringify(type)}`);
    }
    if (end > this.pending.length) return false;
    this.scanned = end;
    this.missing += parts - 1;
    return true;
  }

  private readSize(from: number, to: number): number {
    const text = this.pending.toString('latin1', from, to);
    if (!/^(\d+|-1)$/.test(text)) throw new Error(`not a RESP length: ${JSON.stringify(text)}`);
    return Number(text);
  }
}
