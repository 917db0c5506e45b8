import { type Limit } from '../algorithms/limit.js';
import { CostExceedsLimitError, InvalidArgumentError } from '../common/errors.js';
import { plainObject, rejectUnknown } from '../common/validate.js';
import { type BoundLimit, type Edition } from './bound-limit.js';
import {
  type PolicySettings,
  compileLimit,
  inherit,
  KNOWN_FIGURES,
  type LimitOptions,
} from './policy-options.js';

/**
 * The figures of a limit as a value; a mere rate, as a tier may be. They come from tokens and databases, so any text
 * may stand there.
 */
export type LimitInput = number | string | LimitFigures;

/** Figures that a request brings along. */
export interface LimitFigures {
  readonly rate?: number | string;
  readonly period?: number | string;
  readonly burst?: number;
}

/** Sets of figures that a limiter keeps at once, whichever policies they are for. */
const MOST_SETS = 1000;
/** Sets that are looked at to make room for one more. */
const SEARCH_STEPS = 16;
/** The same figures may be written in several ways; so many texts are remembered. */
const MOST_WORDINGS = 4 * MOST_SETS;
const LONGEST_WORDING = 100;
/** Tokens on lease count in the store for up to two generations after the last one was granted. */
const LEASE_MICROS = 4_000_000;

/** A set of figures in use, and the limit that was made of it. */
interface GivenLimit {
  readonly figures: LimitOptions;
  owner: GivenLimits;
  name: string;
  bound: BoundLimit;
  /** The instant at which all its buckets have recovered, unless another request brings it. */
  restsFrom: number;
}

/**
 * Room for the sets of all policies of a limiter. Like a bucket, a set is forgotten only when
 * forgetting it frees no tokens: when all of its buckets are as new.
 */
export class GivenRoom {
  private readonly sets = new Set<GivenLimit>();
  private hand = this.sets.values();

  constructor(private readonly most = MOST_SETS) {}

  claim(now: number): boolean {
    return this.sets.size < this.most || this.makeRoom(now);
  }

  add(given: GivenLimit): void {
    this.sets.add(given);
  }

  delete(given: GivenLimit): void {
    this.sets.delete(given);
  }

  /** Forgets all that are at rest. */
  sweep(now: number): void {
    for (const given of this.sets) forgetIfAtRest(given, now);
  }

  private makeRoom(now: number): boolean {
    for (let step = 0; step < SEARCH_STEPS; step++) {
      let next = this.hand.next();
      if (next.done) {
        this.hand = this.sets.values();
        next = this.hand.next();
      }
      if (next.value !== undefined && forgetIfAtRest(next.value, now)) return true;
    }
    return false;
  }
}

function forgetIfAtRest(given: GivenLimit, now: number): boolean {
  if (now < given.restsFrom) return false;
  const isAtRest = given.bound.isAtRest(now);
  // An answer that came late has taken from the share of this process.
  if (isAtRest) given.owner.forget(given);
  else given.restsFrom = restOf(given.bound.figures, now);
  return isAtRest;
}

/** Ties a limit to its buckets, which may be those that another limit has stood for. */
export type Bind = (
  tier: string,
  limit: Limit,
  old: BoundLimit | undefined,
  now: number,
) => BoundLimit;

/**
 * The limits of one policy that requests have brought along: figures in place of the name of a tier.
 * The figures are the name of such a tier, so other figures are other buckets.
 */
export class GivenLimits {
  private readonly byName = new Map<string, GivenLimit>();
  /** Most requests bring the very text of another one. */
  private readonly byWording = new Map<string, GivenLimit>();
  private edition: Edition | undefined;

  constructor(
    private readonly policy: PolicySettings,
    private readonly bind: Bind,
    private readonly retire: (limit: BoundLimit) => void,
    private readonly room: GivenRoom,
  ) {}

  /** The limit for such figures; undefined if there is no room for more. Throws if they are none. */
  find(input: LimitInput, now: number): BoundLimit | undefined {
    const wording = wordingOf(input);
    const known = wording === undefined ? undefined : this.byWording.get(wording);
    const given = known ?? this.add(input, wording, now);
    if (given === undefined) return undefined;
    given.restsFrom = restOf(given.bound.figures, now);
    return given.bound;
  }

  /** Throws the error that a request of that cost would get, and keeps nothing. */
  check(input: LimitInput, cost = this.policy.cost): void {
    const wording = wordingOf(input);
    const known = wording === undefined ? undefined : this.byWording.get(wording);
    const { capacity } = known?.bound.figures ?? givenLimit(this.policy, input).limit;
    if (cost > capacity) throw new CostExceedsLimitError(this.policy.name, cost, capacity);
  }

  /** Of the configuration that the policy is of. */
  followRevision(edition: Edition): void {
    this.edition = edition;
    for (const limit of this.limits()) limit.followRevision(edition);
  }

  /** Goes on with the limits of what the policy was before; those that it cannot have any more end. */
  takeOver(before: GivenLimits, now: number): void {
    for (const given of before.byName.values()) {
      const limit = this.compiled(given.figures);
      const name = limit === undefined ? '' : nameOf(limit);
      if (limit === undefined || this.byName.has(name)) {
        this.room.delete(given);
        this.retire(given.bound);
        continue;
      }
      const old = given.bound;
      given.bound = this.bind(name, limit, old, now);
      if (old.latest() !== given.bound) this.retire(old);
      given.owner = this;
      given.name = name;
      this.byName.set(name, given);
    }
    before.byName.clear();
    before.byWording.clear();
  }

  *limits(): Iterable<BoundLimit> {
    for (const { bound } of this.byName.values()) yield bound;
  }

  forget(given: GivenLimit): void {
    this.room.delete(given);
    this.byName.delete(given.name);
    this.byWording.clear();
    this.retire(given.bound);
  }

  /** The policy is gone. */
  release(): void {
    for (const given of this.byName.values()) this.forget(given);
  }

  private add(input: LimitInput, wording: string | undefined, now: number): GivenLimit | undefined {
    const { figures, limit, name } = givenLimit(this.policy, input);
    let given = this.byName.get(name);
    if (given === undefined) {
      if (!this.room.claim(now)) return undefined;
      const bound = this.bind(name, limit, undefined, now);
      if (this.edition !== undefined) bound.followRevision(this.edition);
      given = { figures, owner: this, name, bound, restsFrom: 0 };
      this.byName.set(name, given);
      this.room.add(given);
    }
    if (wording !== undefined && wording.length <= LONGEST_WORDING) {
      if (this.byWording.size >= MOST_WORDINGS) this.byWording.clear();
      this.byWording.set(wording, given);
    }
    return given;
  }

  private compiled(figures: LimitOptions): Limit | undefined {
    try {
      return compile(this.policy, figures);
    } catch {
      return undefined;
    }
  }
}

/** The limit of such figures, and the name of its tier. Throws if they are none that the policy can have. */
export function givenLimit(
  policy: PolicySettings,
  input: LimitInput,
): { readonly figures: LimitOptions; readonly limit: Limit; readonly name: string } {
  const isRate = typeof input === 'number' || typeof input === 'string';
  // Any text may stand there: it is parsed below.
  const given = (isRate ? { rate: input } : input) as LimitOptions;
  plainObject('limit', given, 'a rate, or an object with rate, period or burst');
  rejectUnknown('limit', given, KNOWN_FIGURES);
  // An empty field of a plan must not be taken for the policy's own figures.
  if (given.rate === undefined && given.burst === undefined) {
    throw new InvalidArgumentError('limit', input, 'at least a rate or a burst');
  }
  // As those of a tier: what is not said is the policy's.
  const figures = inherit('limit', policy.figures, given);
  const limit = compile(policy, figures);
  return { figures, limit, name: nameOf(limit) };
}

function compile(policy: PolicySettings, figures: LimitOptions): Limit {
  const limit = compileLimit('limit', figures, policy);
  if (policy.cost > limit.capacity) {
    throw new CostExceedsLimitError(policy.name, policy.cost, limit.capacity);
  }
  return limit;
}

/** The instant at which a bucket is full again, however empty it was or however much it owes. */
function restOf({ ttlMs }: Limit, now: number): number {
  return now + ttlMs * 1000 + LEASE_MICROS;
}

/**
 * The same in all processes, for the same figures however they are written. It begins with a sign that no
 * name of a tier has.
 */
function nameOf({ capacity, perMicro, perToken, periodMicros }: Limit): string {
  return periodMicros > 0 ? `~${capacity}-${periodMicros}` : `~${capacity}-${perMicro}-${perToken}`;
}

/** The input as a text; undefined if it cannot be right. No right text has a quote in it. */
function wordingOf(input: LimitInput): string | undefined {
  if (typeof input !== 'object' || input === null) return wordOf(input);
  for (const field in input) {
    if (!KNOWN_FIGURES.includes(field as keyof LimitOptions)) return undefined;
  }
  const [rate, period, burst] = [wordOf(input.rate), wordOf(input.period), wordOf(input.burst)];
  if (rate === undefined || period === undefined || burst === undefined) return undefined;
  return rate + period + burst;
}

function wordOf(value: unknown): string | undefined {
  switch (typeof value) {
    case 'number':
      return `${value};`;
    case 'string':
      return `"${value}";`;
    case 'undefined':
      return ';';
    default:
      return undefined;
  }
}
