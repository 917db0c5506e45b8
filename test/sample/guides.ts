import { join } from 'node:path';
import { root } from '../setup/ensure-built.js';
import { runToEnd } from '../setup/run-to-end.js';

/** Takes the tour of a sample, as `npm run … -- tour` does; what it wrote is worth reading when it fails. */
export async function takeTour(
  sample: string,
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<string> {
  const main = join(root, 'build/sample', sample, 'main.js');
  const { code, stdout, output } = await runToEnd(process.execPath, [main, 'tour'], {
    cwd: root,
    env,
  });
  const [, kept, promises] = /(\d+) of (\d+) promises were kept/.exec(stdout) ?? [];
  if (code !== 0 || kept !== promises) throw new Error(`the tour of ${sample}:\n${output}`);
  return stdout;
}

export interface Tried {
  readonly line: string;
  readonly output: string;
  readonly seconds: number;
}

/** Runs the lines that `GET /` says to try, each by a shell just as it stands. */
export async function tryLines(address: string, only = /./): Promise<Tried[]> {
  const response = await fetch(address);
  expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  const text = await response.text();
  const lines = text
    .split('\n')
    .filter((line) => /^(?:\(|curl |for |seq )/.test(line) && only.test(line));
  const tried: Tried[] = [];
  for (const line of lines) {
    const startedMs = performance.now();
    const { output } = await runToEnd('sh', ['-c', line], { cwd: root });
    tried.push({ line, output, seconds: (performance.now() - startedMs) / 1000 });
  }
  return tried;
}

/** The number of times that a status stands in the output, as words or as counted by uniq. */
export function statusesIn(output: string, status: number): number {
  const counted = new RegExp(`^ *(\\d+) ${status}$`, 'm').exec(output)?.[1];
  if (counted !== undefined) return Number(counted);
  return output.match(new RegExp(`\\b${status}\\b`, 'g'))?.length ?? 0;
}
