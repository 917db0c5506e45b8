const VARINT = 0;
const LENGTH_DELIMITED = 2;

/**
 * Writes messages of protocol buffers: as much of the format as the details of a status need. A
 * package that does all of it would be larger than this library.
 */
export class ProtobufWriter {
  private readonly parts: Buffer[] = [];

  /** A number from 0 on; 0 is what a field has that is not written. */
  uint(field: number, value: number): this {
    if (value !== 0) this.parts.push(varint(field * 8 + VARINT), varint(value));
    return this;
  }

  string(field: number, value: string): this {
    return value === '' ? this : this.bytes(field, Buffer.from(value, 'utf8'));
  }

  message(field: number, value: ProtobufWriter): this {
    return this.bytes(field, value.finish());
  }

  bytes(field: number, value: Buffer): this {
    this.parts.push(varint(field * 8 + LENGTH_DELIMITED), varint(value.length), value);
    return this;
  }

  finish(): Buffer {
    return Buffer.concat(this.parts);
  }
}

/** Seven bits in each byte, the lowest first. By division: shifts would cut numbers to 32 bits. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) + 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}
