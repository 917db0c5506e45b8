import { SystemClock, type Clock } from '../common/clock.js';
import { durationMs, type Duration } from '../common/duration.js';
import { boundedKey, ownText } from '../common/ids.js';
import { Lru } from '../common/lru.js';
import { plainObject, rejectUnknown, wholeAbove0, withoutUndefined } from '../common/validate.js';
import { ABSENT, TOO_BIG, type Absent, type TooBig } from './fallbacks.js';

/** The initial values are the defaults. */
export class LocalCacheOptions {
  /** How long a value is kept. */
  ttl: Duration = '5m';
  /** How long it is known that something does not exist, or is too big. */
  markerTtl: Duration = '30s';
  maxEntries = 10_000;
}

interface CachedValue {
  readonly value: unknown;
  readonly until: number;
}

/**
 * Values that this process keeps for a while, as a step of `firstOf`: bounded, and with markers for what
 * does not exist. Callers are given the very objects that were put in, and share them.
 */
export class LocalCache<T> {
  private readonly entries: Lru<CachedValue>;
  private readonly ttlMicros: number;
  private readonly markerMicros: number;

  constructor(
    input: Partial<LocalCacheOptions> = {},
    private readonly clock: Pick<Clock, 'now'> = new SystemClock(),
  ) {
    plainObject('localCache', input, 'an object');
    const options = Object.assign(new LocalCacheOptions(), withoutUndefined(input));
    rejectUnknown('localCache', options, Object.keys(new LocalCacheOptions()));
    wholeAbove0('localCache.maxEntries', options.maxEntries);
    this.ttlMicros = durationMs(options.ttl, 'localCache.ttl') * 1000;
    this.markerMicros = durationMs(options.markerTtl, 'localCache.markerTtl') * 1000;
    this.entries = new Lru(options.maxEntries);
  }

  get size(): number {
    return this.entries.count;
  }

  /** Undefined if it is not known, or was put in too long ago. */
  get(key: string): T | Absent | TooBig | undefined {
    const name = nameOf(key);
    const entry = this.entries.get(name);
    if (entry === undefined) return undefined;
    if (this.clock.now() < entry.until) return entry.value as T | Absent | TooBig;
    this.entries.delete(name);
    return undefined;
  }

  set(key: string, value: T | Absent | TooBig): void {
    const isMarker = value === ABSENT || value === TOO_BIG;
    const until = this.clock.now() + (isMarker ? this.markerMicros : this.ttlMicros);
    this.entries.set(ownText(nameOf(key)), { value, until });
  }

  delete(key: string): void {
    this.entries.delete(nameOf(key));
  }
}

/** Callers ask for what does not exist, by names of any length. Programs without types may bring a number. */
const nameOf = (key: string): string => boundedKey(String(key));
