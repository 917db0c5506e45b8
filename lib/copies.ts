import { fileURLToPath } from 'node:url';
import { packageFile } from './stores/package-file.js';

/** The folders that the package is loaded from, known to every copy of it. */
const COPIES = Symbol.for('nestjs-weir.copies');

type Process = typeof globalThis & { [COPIES]?: Set<string> };

/**
 * Tells once of a second copy of the package in the process: the classes of one are unknown to the other, so that
 * what it injects is not found and its limits are counted apart.
 */
export function announceCopy(
  from: string = fileURLToPath(packageFile('.')),
  tell: (message: string) => void = (message) => process.emitWarning(message, 'NestjsWeir'),
): void {
  const copies = ((globalThis as Process)[COPIES] ??= new Set());
  if (copies.has(from)) return;
  copies.add(from);
  if (copies.size !== 2) return;
  const [first, second] = copies;
  tell(
    `nestjs-weir is loaded twice, from ${first} and ${second}, and they share no limits: ` +
      'npm ls nestjs-weir, then npm dedupe',
  );
}
