import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Job, type MeasurementOf, type Reply, type Request } from './protocol.js';

const MAIN = fileURLToPath(new URL('../main.js', import.meta.url));

/** The option of main.js that makes it hold a contender instead of running suites. */
export const CONTENDER_FLAG = '--contender-process';

/**
 * A contender in a process of its own.
 *
 * In one process contenders would share a heap, an event loop and what the compiler has learnt: one
 * pays for collecting another's million keys, and call sites that see several limiters are slower
 * than any application's. Apart, each runs as it would alone, while rounds still interleave.
 */
export class ContenderProcess<J extends Job = Job> {
  private constructor(private readonly child: ChildProcess) {}

  /** Resolves when the contender holds its keys and is warm. */
  static async start<J extends Job>(job: J): Promise<ContenderProcess<J>> {
    const child = fork(MAIN, [CONTENDER_FLAG], {
      // The most hungry one needs about a gigabyte for a million keys.
      execArgv: ['--expose-gc', '--max-old-space-size=4096'],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const started = new ContenderProcess<J>(child);
    try {
      await started.ask({ ask: 'prepare', job });
      return started;
    } catch (error) {
      await started.stop();
      throw error;
    }
  }

  async measure(): Promise<MeasurementOf[J['kind']]> {
    return (await this.ask({ ask: 'measure' })) as MeasurementOf[J['kind']];
  }

  /** The process is killed without asking: it holds nothing that anyone needs. */
  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exited;
  }

  private ask(request: Request): Promise<unknown> {
    const { child } = this;
    return new Promise((resolve, reject) => {
      const onMessage = (message: unknown): void => {
        child.off('exit', onExit);
        const reply = message as Reply;
        if (reply.reply === 'failed') reject(new Error(reply.reason));
        else resolve(reply.measurement);
      };
      const onExit = (code: number | null, signal: string | null): void => {
        child.off('message', onMessage);
        reject(new Error(`its process ended early (${signal ?? `exit code ${code}`})`));
      };
      child.once('message', onMessage);
      child.once('exit', onExit);
      child.send(request);
    });
  }
}
