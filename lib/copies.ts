import { fileURLToPath } from 'node:url';
import { packageFile } from './stores/package-file.js';

/** Where the package is loaded from, in every copy of it and in the file that `require` gets. */
const COPIES = Symbol.for('nestjs-weir.copies');

type Process = typeof globalThis & { [COPIES]?: Set<string> };

/**
 * Tells once of a second copy of the package in the process: the classes of one are unknown to the other, so that
 * what it injects is not found and its limits are counted apart.
 */
export function announceCopy(
  from: string = copyOf(import.meta.url),
  tell: (message: string) => void = (message) => process.emitWarning(message, 'NestjsWeir'),
): void {
  const copies = ((globalThis as Process)[COPIES] ??= new Set());
  if (copies.has(from)) return;
  copies.add(from);
  if (copies.size !== 2) return;
  const [first, second] = copies;
  const isOnePackage = withoutForm(first!) === withoutForm(second!);
  const advice = isOnePackage
    ? 'let all of the application import it, or all of it require it'
    : 'npm ls nestjs-weir, then npm dedupe';
  tell(
    `nestjs-weir is loaded twice, from ${first} and ${second}, and they share no limits: ${advice}`,
  );
}

/** The folder of the bundle: `dist` of ES modules, `dist-cjs` of CommonJS. */
function copyOf(url: string): string {
  const root = fileURLToPath(packageFile('.'));
  const [form = ''] = fileURLToPath(url).slice(root.length).split(/[/\\]/);
  return root + form;
}

const withoutForm = (copy: string): string => copy.replace(/[^/\\]*$/, '');
