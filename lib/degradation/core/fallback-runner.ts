import { type Clock } from '../../common/clock.js';
import { inBudget, NOTHING, SingleFlight } from '../../common/single-flight.js';
import { type FallbackCall, type FallbackFunction } from './contract.js';

/** Why a function gave no answer. */
export type FallbackFault = 'threw' | 'hung' | 'busy' | 'stream' | 'empty';

/**
 * One function of a route that makes answers. So many of its calls run at once and no more: one that
 * hangs keeps its place until it ends, or the calls would pile up. Requests of one key share a call.
 */
export class FallbackRunner {
  private running = 0;
  private readonly flights = new SingleFlight<unknown>();

  constructor(
    private readonly run: FallbackFunction,
    private readonly clock: Clock,
    /** Called for errors of the function. */
    private readonly failed: (error: unknown) => void = () => {},
  ) {}

  /** The function's value within the budget, else why there is none. Never rejects. */
  async make(
    call: FallbackCall,
    key: string | undefined,
    maxRunning: number,
  ): Promise<{ readonly value: unknown } | FallbackFault> {
    const result = this.join(key) ?? this.begin(call, key, maxRunning);
    if (result === undefined) return 'busy';
    let fault: FallbackFault = 'threw';
    const budgetMs = call.remainingMs;
    const value = await inBudget(result, budgetMs, this.clock, (why) => (fault = why));
    if (value === NOTHING) return fault;
    if (isStream(value)) return 'stream';
    return value === undefined ? 'empty' : { value };
  }

  /** A call that has outlived its first caller's time is not worth waiting for. */
  private join(key: string | undefined): Promise<unknown> | undefined {
    if (key === undefined) return undefined;
    return this.flights.join(key, (until) => this.clock.now() < until);
  }

  private begin(
    call: FallbackCall,
    key: string | undefined,
    maxRunning: number,
  ): Promise<unknown> | undefined {
    if (this.running >= maxRunning) return undefined;
    this.running++;
    const work = this.begun(call).finally(() => this.running--);
    const until = this.clock.now() + call.remainingMs * 1000;
    const result = key === undefined ? work : this.flights.begin(key, work, until);
    // Requests that wait learn that there is nothing; none may be left.
    result.catch(this.failed);
    return result;
  }

  /** A function that throws at once has failed like one that rejects. */
  private async begun(call: FallbackCall): Promise<unknown> {
    const value = await this.run(call);
    if (isStream(value)) discard(value);
    return value;
  }
}

/** A stream cannot stand in for an answer. */
export function isStream(value: unknown): boolean {
  if (value === null || typeof value !== 'object') return false;
  const { pipe, subscribe, getReader, getStream } = value as Record<string, unknown>;
  const isSource = [pipe, subscribe, getReader, getStream].some((one) => typeof one === 'function');
  return isSource || Symbol.asyncIterator in value;
}

/** An open file or socket behind it would never be read. */
function discard(value: unknown): void {
  try {
    (value as { destroy?: () => void }).destroy?.();
  } catch {
    // It was not ours to begin with.
  }
}
