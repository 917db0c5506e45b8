import { readFileSync } from 'node:fs';
import { packageFile } from '../stores/package-file.js';

/** The version of this library; empty if its package.json is not there, as in a bundle. */
export function libraryVersion(): string {
  try {
    const file = readFileSync(packageFile('package.json'), 'utf8');
    return (JSON.parse(file) as { version: string }).version;
  } catch {
    return '';
  }
}
