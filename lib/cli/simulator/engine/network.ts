import { StoreTimeoutError, StoreUnavailableError } from '../../../common/errors.js';
import { type VirtualTime } from './virtual-time.js';

/** `silent`: nothing comes back, and a call ends at its deadline; `refused`: it fails at once. */
export type NetworkState = 'up' | 'silent' | 'refused';

/** One way takes 0.2 to 1 ms, as between two machines of one zone under some load. */
const LEAST_DELAY_MICROS = 200;
export const DELAY_SPREAD_MICROS = 800;

/** The way to the store and back: takes its time, and may be cut. */
export class Network {
  state: NetworkState = 'up';
  /** Seconds since the start at which calls were sent. */
  readonly sentAt: number[] = [];

  constructor(
    private readonly time: VirtualTime,
    private readonly random: () => number,
    private readonly deadlineMs: number,
  ) {}

  call<T>(serve: () => T): Promise<T> {
    this.sentAt.push(this.time.seconds());
    return new Promise((resolve, reject) => {
      const deadline = this.time.now() + this.deadlineMs * 1000;
      const fail = (): void => this.fail(deadline, reject);
      this.oneWay(() => {
        if (this.state !== 'up') return fail();
        const reply = serve();
        this.oneWay(() => {
          if (this.state !== 'up') return fail();
          this.time.needsSettling = true;
          resolve(reply);
        });
      });
    });
  }

  /** The time of one message, one way. */
  delayMicros(): number {
    return LEAST_DELAY_MICROS + this.random() * DELAY_SPREAD_MICROS;
  }

  private oneWay(arrive: () => void): void {
    this.time.at(this.time.now() + this.delayMicros(), arrive);
  }

  private fail(deadline: number, reject: (error: Error) => void): void {
    const isRefused = this.state === 'refused';
    this.time.at(isRefused ? this.time.now() : deadline, () => {
      this.time.needsSettling = true;
      reject(
        isRefused
          ? new StoreUnavailableError('no connection')
          : new StoreTimeoutError(this.deadlineMs),
      );
    });
  }
}
