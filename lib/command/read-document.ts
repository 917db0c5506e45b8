import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { ConfigSyntaxError, parseText } from '../config/index.js';

/** What stands in a file; `-` is the standard input. */
export async function readDocument(file: string): Promise<unknown> {
  return parseText(await load(file), file === '-' ? 'the input' : file);
}

async function load(file: string): Promise<string> {
  try {
    return file === '-' ? await text(process.stdin) : await readFile(file, 'utf8');
  } catch (error) {
    throw new ConfigSyntaxError(file, `cannot be read (${(error as Error).message})`);
  }
}
