import { readFileSync } from 'node:fs';

/** The version of this library; empty if its package.json is not there, as in a bundle. */
export function libraryVersion(): string {
  try {
    const file = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
    return (JSON.parse(file) as { version: string }).version;
  } catch {
    return '';
  }
}
