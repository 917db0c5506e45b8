import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('./frames.js', import.meta.url));

/** A minute of the process, second by second, in CPU milliseconds. */
export interface Minute {
  /** The tick of the monitor, the frame, and its way to the viewers. */
  readonly secondsMs: readonly number[];
  /** The last of these alone. */
  readonly framesMs: readonly number[];
  /** As many bytes, in as many writes, to sockets that are nothing but sockets. */
  readonly bareMs: readonly number[];
}

export interface Held {
  readonly frameBytes: number;
  /** Sent to a viewer in the last second. */
  readonly tickBytes: number;
  /** More than after two minutes. */
  readonly grownBytes: number;
}

/** A process whose dashboard has so many viewers, on a clock that is moved by hand: a second takes as long as its work. */
export class WatchedProcess {
  private constructor(private readonly child: ChildProcess) {}

  static async start(viewers: number): Promise<WatchedProcess> {
    const child = fork(MAIN, [String(viewers)], { execArgv: ['--expose-gc'] });
    const started = new WatchedProcess(child);
    await started.answer();
    return started;
  }

  minute(): Promise<Minute> {
    return this.ask('minute') as Promise<Minute>;
  }

  held(): Promise<Held> {
    return this.ask('held') as Promise<Held>;
  }

  stop(): void {
    this.child.kill('SIGKILL');
  }

  private ask(what: 'minute' | 'held'): Promise<unknown> {
    this.child.send(what);
    return this.answer();
  }

  private async answer(): Promise<unknown> {
    const over = new AbortController();
    const { signal } = over;
    const ended = once(this.child, 'exit', { signal }).then(() => {
      throw new Error('the process that is watched ended early');
    });
    try {
      const [answer] = (await Promise.race([once(this.child, 'message', { signal }), ended])) as [
        unknown,
      ];
      return answer;
    } finally {
      ended.catch(() => undefined);
      over.abort();
    }
  }
}
