import { type Clock } from '../../common/clock.js';
import { type FallbackCall, type FallbackFunction } from './contract.js';
import { inBudget, NOTHING } from './in-budget.js';

/** Why a function gave no answer. */
export type FallbackFault = 'threw' | 'hung' | 'busy' | 'stream' | 'empty';

interface Flight {
  readonly result: Promise<unknown>;
  readonly until: number;
}

/**
 * One function of a route that makes answers. So many of its calls run at once and no more: one that
 * hangs keeps its place until it ends, or the calls would pile up. Requests of one key share a call.
 */
export class FallbackDesk {
  private running = 0;
  private readonly flights = new Map<string, Flight>();

  constructor(
    private readonly run: FallbackFunction,
    private readonly clock: Clock,
    /** Told of what the function throws. */
    private readonly failed: (error: unknown) => void = () => {},
  ) {}

  /** What the function makes within the budget, else why there is nothing. Never rejects. */
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

  /** A call that has outlived its own caller's patience is not worth waiting for. */
  private join(key: string | undefined): Promise<unknown> | undefined {
    const flight = key === undefined ? undefined : this.flights.get(key);
    return flight !== undefined && this.clock.now() < flight.until ? flight.result : undefined;
  }

  private begin(
    call: FallbackCall,
    key: string | undefined,
    maxRunning: number,
  ): Promise<unknown> | undefined {
    if (this.running >= maxRunning) return undefined;
    this.running++;
    const result = this.begun(call).finally(() => {
      this.running--;
      if (key !== undefined && this.flights.get(key)?.result === result) this.flights.delete(key);
    });
    // Those who wait are told that there is nothing; nobody may be left.
    result.catch(this.failed);
    const until = this.clock.now() + call.remainingMs * 1000;
    if (key !== undefined) this.flights.set(key, { result, until });
    return result;
  }

  /** What throws at once has failed like what rejects. */
  private async begun(call: FallbackCall): Promise<unknown> {
    const value = await this.run(call);
    if (isStream(value)) discard(value);
    return value;
  }
}

/** What comes in pieces cannot stand in for an answer. */
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
