import { type ChildProcess } from 'node:child_process';
import { hasExited, spawnOwned } from './processes.js';
import { until } from './until.js';

/**
 * A process that takes orders and reports, as seen from the test. Whatever goes wrong in it ends the
 * waiting for its reports, with what it has written.
 */
export abstract class ObedientProcess<Order extends object, Report> {
  /** The fault that the process has told of. */
  protected broken = '';
  protected readonly child: ChildProcess;
  private written = '';

  protected constructor(main: string) {
    this.child = spawnOwned(process.execPath, [main], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      serialization: 'advanced',
    });
    this.child.on('message', (report) => this.hear(report as Report));
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.written += text));
  }

  /** Whether it has said all that it will say. */
  protected abstract get isDone(): boolean;

  protected abstract hear(report: Report): void;

  protected order(order: Order): void {
    this.child.send(order, () => undefined);
  }

  protected async until<T>(
    condition: () => T,
    what: string,
    timeoutMs: number,
  ): Promise<NonNullable<T>> {
    const orBroken = (): T | 'broken' => {
      if (hasExited(this.child) && !this.isDone) this.broken ||= 'it ended early';
      return this.broken ? 'broken' : condition();
    };
    const value = await until(orBroken, { what, timeoutMs });
    if (this.broken) throw new Error(`${this.broken}\n${this.written}`);
    return value as NonNullable<T>;
  }
}
