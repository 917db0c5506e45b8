import { type ExecutionContext } from '@nestjs/common';
import { createHash, randomBytes } from 'node:crypto';
import { isPlainKey, ownText } from '../common/ids.js';
import { Lru } from '../common/lru.js';
import { type AnswerFacts, type Substitutes } from '../requests/transport.js';
import { type AnswerKeys } from './answer-keys.js';
import { foreignType, foreignVary, mayStore } from './core/cacheability.js';
import { type AnswerStore, type FallbackLevels } from './core/contract.js';

export interface RouteAnswersDeps {
  readonly caches: Pick<AnswerStore, 'isDue' | 'store'>;
  /** Called for a route with an answer that the caches do not keep. */
  readonly notKept: (route: string, why?: NotKeptCause) => void;
  readonly kept: CachedRequests;
}

/** The part of an answer that its copy would not have. */
export interface NotKeptCause {
  /** The unknown header that it varies by. */
  readonly vary?: string;
  /** The type that its handler has set. */
  readonly type?: string;
}

/** Fingerprints of requests to a route whose answers were looked at lately. */
const MOST_FINGERPRINTS = 10_000;
/** How often the caches may want the answer to a request anew. */
const LOOK_EVERY_MICROS = 1_000_000;

/** Fills the caches with the answers of a route's handler. */
export class RouteAnswers {
  private readonly due: DueAnswers;
  private readonly isKept: boolean;

  constructor(
    private readonly route: string,
    private readonly keys: AnswerKeys,
    private readonly levels: FallbackLevels,
    private readonly deps: RouteAnswersDeps,
    long: LongFingerprints,
  ) {
    this.due = new DueAnswers(MOST_FINGERPRINTS, route, long);
    this.isKept = levels.level1 !== false || levels.level2 !== false;
  }

  /** Whether the answer to a request is worth a look. Nothing is put into a key or into JSON for it. */
  isDue(context: ExecutionContext, transport: Substitutes, nowMicros: number): boolean {
    if (!this.isKept) return false;
    const fingerprint = this.keys.fingerprintOf(context, transport);
    if (fingerprint === undefined || !this.due.isDue(fingerprint, nowMicros)) return false;
    // One with credentials must not put off the answer that callers without any get.
    if (!this.keys.isOfKnownCaller(context, transport)) return false;
    this.due.postpone(fingerprint, nowMicros + LOOK_EVERY_MICROS);
    return true;
  }

  keep(
    value: unknown,
    facts: AnswerFacts,
    context: ExecutionContext,
    transport: Substitutes,
  ): void {
    const { caches, notKept } = this.deps;
    if (value === undefined || !mayStore(facts)) return;
    const vary = foreignVary(facts, this.keys.vary);
    if (vary !== undefined) return notKept(this.route, { vary });
    const type = foreignType(facts, value);
    if (type !== undefined) return notKept(this.route, { type });
    const key = this.keys.keyOf(context, transport);
    if (key === undefined || !caches.isDue(this.levels, key)) return;
    if (!caches.store(this.levels, key, value)) return notKept(this.route);
    this.found(context, transport);
  }

  /** The caches have an answer to it. */
  found(context: ExecutionContext, transport: Substitutes): void {
    this.deps.kept.add(() => [transport.fingerprintOf(context)]);
  }
}

/** The caches hold as many answers by default. */
const MOST_KEPT = 10_000;

/**
 * Fingerprints of requests whose answers went into the caches: of a plain GET, its address. The line of an
 * overloaded process looks them up before the route is known. Without a line nothing is remembered.
 */
export class CachedRequests {
  private fingerprints: Lru<true> | undefined;

  remember(): void {
    this.fingerprints ??= new Lru(MOST_KEPT);
  }

  add(fingerprintsOf: () => readonly string[]): void {
    if (this.fingerprints === undefined) return;
    for (const fingerprint of fingerprintsOf()) {
      if (isPlainKey(fingerprint)) this.fingerprints.set(ownText(fingerprint), true);
    }
  }

  has(fingerprint: string): boolean {
    return this.fingerprints?.get(fingerprint) === true;
  }
}

/** Places for long fingerprints of all routes; the caches hold 10,000 answers of all routes by default. */
const LONG_PLACES = 16_384;

/**
 * When the answer to a request is to be stored again. Decided before anything is put into a key or
 * into JSON: of a busy route's answers one in thousands is stored.
 *
 * Two generations: when the young one is full the old one is forgotten, and what is asked often moves
 * over. Requests without end cost no more memory than two generations. The answer to a forgotten one is stored early.
 */
export class DueAnswers {
  private young = new Map<string, number>();
  private old = new Map<string, number>();

  constructor(
    private readonly most: number,
    private readonly route: string,
    private readonly long: LongFingerprints,
  ) {}

  isDue(fingerprint: string, nowMicros: number): boolean {
    if (!isPlainKey(fingerprint)) return this.long.isDue(this.route, fingerprint, nowMicros);
    const next = this.young.get(fingerprint) ?? this.fromOld(fingerprint);
    return next === undefined || nowMicros >= next;
  }

  /** Until then it is not due, as long as it is remembered. */
  postpone(fingerprint: string, untilMicros: number): void {
    if (isPlainKey(fingerprint)) this.remember(fingerprint, untilMicros);
    else this.long.postpone(this.route, fingerprint, untilMicros);
  }

  private fromOld(fingerprint: string): number | undefined {
    const next = this.old.get(fingerprint);
    if (next !== undefined) this.remember(fingerprint, next);
    return next;
  }

  private remember(fingerprint: string, next: number): void {
    if (this.young.size >= this.most && !this.young.has(fingerprint)) {
      this.old = this.young;
      this.young = new Map();
    }
    this.young.set(ownText(fingerprint), next);
  }
}

/**
 * The same for fingerprints that are too long to be remembered, of all routes: 192 KB, whatever is asked. A digest
 * tells a place and a mark; a fingerprint that finds another's mark takes the place, and the answer to the other is
 * stored early. The salt keeps callers from aiming at somebody's place.
 */
export class LongFingerprints {
  private readonly salt = randomBytes(16);
  private places: { readonly marks: Int32Array; readonly next: Float64Array } | undefined;

  isDue(route: string, fingerprint: string, nowMicros: number): boolean {
    if (this.places === undefined) return true;
    const { marks, next } = this.places;
    const { place, mark } = this.placeOf(route, fingerprint);
    return marks[place] !== mark || nowMicros >= next[place]!;
  }

  postpone(route: string, fingerprint: string, untilMicros: number): void {
    this.places ??= {
      marks: new Int32Array(LONG_PLACES),
      next: new Float64Array(LONG_PLACES),
    };
    const { place, mark } = this.placeOf(route, fingerprint);
    this.places.marks[place] = mark;
    this.places.next[place] = untilMicros;
  }

  private placeOf(route: string, fingerprint: string): { place: number; mark: number } {
    // Over UTF-16, where texts that UTF-8 cannot tell apart (lone surrogates) still differ.
    const hash = createHash('sha256').update(this.salt).update(`${route}\0`, 'utf16le');
    const digest = hash.update(fingerprint, 'utf16le').digest();
    return { place: digest.readUInt32LE(0) % LONG_PLACES, mark: digest.readInt32LE(4) };
  }
}
