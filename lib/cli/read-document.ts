import { readText } from '../config/sources/file-source.js';
import { parseText, tooLarge } from '../config/sources/parse-text.js';
import { MOST_BYTES } from '../config/schema/plain-json.js';

const INPUT = 'the input';

/** What stands in a file; `-` is the standard input. */
export async function readDocument(file: string): Promise<unknown> {
  if (file === '-') return parseText(await readInput(), INPUT);
  return parseText(await readText(file, file), file);
}

/** No further than is allowed: what is piped in need not end. */
async function readInput(): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of process.stdin as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MOST_BYTES) throw tooLarge(INPUT, bytes);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}
