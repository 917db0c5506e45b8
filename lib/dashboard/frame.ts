import { type TripCause } from '../degradation/core/contract.js';
import { type BreakerMode } from '../protection/breaker.js';
import { type Decision } from '../limiter/decision.js';
import { type ShownDenial } from '../observability/limited.js';
import { type FleetNode, type WatchedState } from '../observability/state.js';
import { type Verdict } from '../observability/verdict.js';
import { type Usual } from './usual.js';

/** All that the page shows of one second. The same for all viewers. */
export interface PageFrame {
  /** Of the page's own files: another one means that a page which is open is of an earlier deployment. */
  readonly build: string;
  readonly version: string;
  /** The process that tells. */
  readonly seenFrom: string;
  /** By its wall clock. */
  readonly nowMs: number;
  /** `process`: the figures are this process's alone, as the store is in memory or nobody has merged them yet. */
  readonly scope: 'fleet' | 'process';
  readonly storeKind: 'memory' | 'redis';
  /** How long a decision waits for Redis; null where the store is in memory. */
  readonly storeTimeoutMs: number | null;
  readonly canWrite: boolean;
  readonly verdict: Verdict;
  /** What else is known, in one sentence, for a verdict that says all by itself. */
  readonly aside: string;
  /** A change of the last minutes, in one sentence; empty where there was none. */
  readonly news: string;
  /** Where the revision of `change` is in force: `on all nodes`, `on 2 of 3 nodes`; empty where there is none. */
  readonly reached: string;
  readonly state: WatchedState;
  /** In an overload the capacity itself is short, and not only the ceiling of some app. */
  readonly isShort: boolean;
  /** Of the fleet, the busiest first; the process itself where it is alone. */
  readonly nodes: readonly FleetNode[];
  /** The others, which cannot be seen while Redis is away and until they are merged again; null where all are seen. */
  readonly unseen: UnseenNodes | null;
  /** Those of the fleet that the figures are without, in words; empty where they are of all. */
  readonly leftOut: string;
  /** The part of all decisions of this process in the last minute that were made without a call; null without any. */
  readonly inProcess: number | null;
  /** Of all requests, in the minutes before; null as long as too few are known. */
  readonly usual: Usual | null;
  /** Apps and keys that are turned away, the busiest first, with the cause. */
  readonly limited: readonly ShownDenial[];
  /** At most 200, those that are asked most; in the order of the document. */
  readonly policies: readonly ShownPolicy[];
  /** Of this process, all of them. */
  readonly policyCount: number;
  readonly resources: readonly ShownResource[];
  readonly overload: ShownOverload | null;
  readonly change: ShownChange | null;
  /** Whether limits of apps may be raised; null where there is no cluster level. */
  readonly room: ShownRoom | null;
  /** Tokens per second of each app that this process may admit while Redis is away; null while it answers. */
  readonly shares: Readonly<Record<string, number>> | null;
  readonly actions: readonly ShownAction[];
  readonly viewers: number;
}

export interface ShownRoom {
  /** The answer for all of them. */
  readonly note: string;
  /** How far, in tokens per second; none where none may be raised now. */
  readonly apps: readonly {
    readonly app: string;
    readonly promise: readonly [now: number, most: number];
    readonly ceiling: readonly [now: number, most: number];
  }[];
}

export interface UnseenNodes {
  readonly count: number;
  /** Those that were seen last, at most 200, with the figures of then, and when that was. */
  readonly nodes: readonly FleetNode[];
  readonly seenMs: number | null;
  /** The total, as far as anything can be said of it, in sentences. */
  readonly said: string;
}

/** A button of the application's own. */
export interface ShownAction {
  readonly name: string;
  readonly text: string;
  readonly link: string | null;
}

/** A policy's limit, as this process has it. */
export interface ShownPolicy {
  readonly name: string;
  /** Tokens, and how long all of them take to come back. */
  readonly capacity: number;
  readonly windowMs: number;
  readonly shadow: boolean;
  /** One bucket for all callers, and not one for each key. */
  readonly isGlobal: boolean;
  /** Counted by this process alone. */
  readonly isNodes: boolean;
}

/** A resource on this process, beside what is known of all. */
export interface ShownResource {
  readonly resource: string;
  readonly cause: TripCause | null;
  readonly level: number | null;
  readonly observing: boolean;
  readonly sinceMs: number | null;
  readonly breakerMode: BreakerMode | null;
  readonly inFlight: number;
  readonly waiting: number;
  /** The stages of the ramp, in percent; empty where there is no `@Degrade`. */
  readonly stages: readonly number[];
}

/** The line of this process. Rates are per second. */
export interface ShownOverload {
  readonly standing: boolean;
  readonly waiting: number;
  readonly inFlight: number;
  readonly turnMs: number;
  readonly factor: number;
  readonly score: number | null;
  readonly tiers: readonly {
    readonly tier: string;
    readonly ran: number;
    readonly waited: number;
    readonly refused: number;
  }[];
}

/** The configuration that holds, and who wrote it. */
export interface ShownChange {
  readonly revision: number;
  readonly profile: string;
  readonly by: string | null;
  readonly atMs: number | null;
  /** Its changes, in one line; null where nothing is known of them. */
  readonly told: string | null;
  /** All that holds is as it was before: an update was staged, cancelled or dropped. */
  readonly isEmpty?: boolean;
  readonly staged: number;
}

/** The answer to "why is this one limited?". */
export interface Looked {
  /** The sum of the list and the buckets in a sentence; empty where the buckets that turn it away are all there is to tell. */
  readonly said: string;
  readonly policies: readonly LookedAt[];
  readonly others: readonly NotLookedAt[];
}

/** A policy that was asked whether it would turn a caller away. */
export interface LookedAt extends Pick<
  Decision,
  'policy' | 'allowed' | 'remaining' | 'limit' | 'retryAfterMs' | 'resetMs' | 'source'
> {
  /** As the guard makes it of such a caller. */
  readonly key: string;
  /** Of the policy's tiers the one with the least left. */
  readonly tier: string;
}

/** A policy that goes by several things at once, of which not all were said. */
export interface NotLookedAt {
  readonly policy: string;
  readonly takes: string;
}
