import { spawnOwned } from '../support/processes.js';

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Both, in the order in which they were written. */
  readonly output: string;
}

export interface RunOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Written to the standard input. */
  readonly input?: string;
}

/** Runs a program to its end and keeps what it wrote. */
export async function runToEnd(
  command: string,
  args: readonly string[],
  { cwd, env = {}, input = '' }: RunOptions,
): Promise<Finished> {
  const child = spawnOwned(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const written = { stdout: '', stderr: '', output: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream]?.setEncoding('utf8').on('data', (text: string) => {
      written[stream] += text;
      written.output += text;
    });
  }
  child.ref();
  child.stdin?.on('error', () => undefined).end(input);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, ...written };
}
