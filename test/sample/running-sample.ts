import { execFile, type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { root } from '../setup/ensure-built.js';
import { exited, spawnOwned } from '../support/processes.js';
import { until } from '../support/until.js';

/** A sample in a process of its own, as its npm script starts it. */
export class RunningSample {
  written = '';

  private constructor(private readonly child: ChildProcess) {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.written += text));
    }
  }

  /** Resolves when it has written `ready`. */
  static async start(
    name: string,
    env: Readonly<Record<string, string>>,
    ready: string,
    args: readonly string[] = [],
    { inOwnGroup = false } = {},
  ): Promise<RunningSample> {
    const main = join(root, 'build/sample', name, 'main.js');
    const child = spawnOwned(process.execPath, [main, ...args], {
      env: { ...process.env, ...env },
      detached: inOwnGroup,
    });
    const sample = new RunningSample(child);
    await until(() => sample.written.includes(ready), {
      timeoutMs: 120_000,
      what: `the welcome of ${name}`,
    }).catch((error: unknown) => {
      throw new Error(`${name} did not start:\n${sample.written}`, { cause: error });
    });
    return sample;
  }

  /** All processes that it has started, and those that they have. */
  async descendants(): Promise<number[]> {
    const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=']);
    const pairs = stdout
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/).map(Number) as [number, number]);
    const found = [this.child.pid!];
    for (const parent of found) {
      for (const [pid, ppid] of pairs) if (ppid === parent) found.push(pid);
    }
    return found.slice(1);
  }

  /** Asks it to end; resolves to what it ended with. */
  stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | NodeJS.Signals | null> {
    this.child.kill(signal);
    return this.ended();
  }

  /** Tells it and all that it has started, as a terminal does; of one that was started in a group of its own. */
  stopGroup(signal: NodeJS.Signals): Promise<number | NodeJS.Signals | null> {
    process.kill(-this.child.pid!, signal);
    return this.ended();
  }

  private async ended(): Promise<number | NodeJS.Signals | null> {
    await exited(this.child);
    return this.child.signalCode ?? this.child.exitCode;
  }
}
