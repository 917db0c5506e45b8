import {
  Protection,
  type ResourceInput,
  type ResourceStats,
  type RunContext,
  type RunOptions,
} from 'nestjs-weir';
import { type ProtectionDeps } from '../../lib/protection/protection.js';
import { ManualClock, settle } from '../support/manual-clock.js';

/** One call of the resource `db`, whose work ends when the test says so. */
export class Call {
  run: RunContext | undefined;
  value: unknown;
  error: unknown;
  isDone = false;
  private resolve!: (value: unknown) => void;
  private reject!: (error: unknown) => void;

  constructor(protection: Protection, options?: RunOptions) {
    const work = (run: RunContext): Promise<unknown> => {
      this.run = run;
      return new Promise((resolve, reject) => {
        this.resolve = resolve;
        this.reject = reject;
      });
    };
    protection
      .run('db', work, options)
      .then(
        (value) => (this.value = value),
        (error: unknown) => (this.error = error),
      )
      .finally(() => (this.isDone = true));
  }

  get hasBegun(): boolean {
    return this.run !== undefined;
  }

  async succeed(value: unknown = 'done'): Promise<void> {
    this.resolve(value);
    await settle();
  }

  async fail(error: unknown = new Error('down')): Promise<void> {
    this.reject(error);
    await settle();
  }
}

/** A resource `db` on a clock that the test moves. */
export class Bench {
  readonly clock = new ManualClock();
  readonly protection: Protection;
  readonly told: unknown[] = [];

  constructor(options: ResourceInput, parts: ProtectionDeps = {}) {
    this.protection = new Protection({ db: options }, { clock: this.clock, seed: 'a', ...parts });
    for (const name of ['slow', 'held', 'breaker'] as const) {
      this.protection.on(name, (event) => this.told.push({ [name]: event }));
    }
  }

  get stats(): ResourceStats {
    return this.protection.stats().db!;
  }

  call(options?: RunOptions): Call {
    return new Call(this.protection, options);
  }

  async advance(ms: number): Promise<void> {
    await this.clock.advanceAsync(ms);
    await settle();
  }

  /** Calls that end at once, one after the other. Returns the codes of those that failed. */
  async calls(count: number, outcome: 'succeed' | 'fail'): Promise<string[]> {
    const codes: string[] = [];
    for (let n = 0; n < count; n++) {
      const error = new Error('down');
      const work = () => (outcome === 'fail' ? Promise.reject(error) : Promise.resolve());
      await this.protection.run('db', work).catch((thrown: unknown) => {
        codes.push((thrown as { code?: string }).code ?? 'down');
      });
    }
    return codes;
  }
}
