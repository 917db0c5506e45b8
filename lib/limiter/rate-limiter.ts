import type { Cluster, Redis } from 'ioredis';
import { type QuotaStatus } from '../algorithms/quota/quota-status.js';
import { type Decision, type DecisionSource } from './decision.js';
import { type HotValue } from '../local/hot-values.js';
import { type NodeMode } from '../local/lease-calls.js';
import { type DeniedKeys } from './denied-keys.js';
import { type RateLimiterEvents } from './events.js';
import { type LimitInput } from './given-limits.js';
import { type PolicyCounters } from './limit-counters.js';
import { type LimitsChange } from './limits-change.js';
import { type PolicyName } from './policy-names.js';
import { type FailureMode, type PolicyInput } from './policy-options.js';
import { type StoreStats } from '../stores/redis/redis-store.js';

/** May this key of this policy have so many tokens? */
export interface PolicyRequest {
  readonly app?: undefined;
  readonly policy: PolicyName;
  /** The owner of the bucket: an address, a user, a tenant… Must not be empty. */
  readonly key: string;
  /** Which of the policy's tiers; by default, and if unknown, the policy's default tier. */
  readonly tier?: string;
  /**
   * The figures themselves in place of a tier: a plan from a token or a database. They are part of
   * what the bucket is called, so who gets other figures gets another bucket, which is full.
   */
  readonly limit?: LimitInput;
  /** Tokens to take; by default the policy's cost. */
  readonly cost?: number;
}

/** May this app have so many tokens of its quota? */
export interface QuotaRequest {
  readonly policy?: undefined;
  readonly app: string;
  /** Tokens to take; by default 1. */
  readonly cost?: number;
  /** The HTTP verb, gRPC method or message pattern that is called: consumption is counted by it. */
  readonly method?: string;
}

/** A request to the limiter. */
export type AcquireRequest = PolicyRequest | QuotaRequest;

/** One request, or several of which all or none are taken. */
export type Acquire = AcquireRequest | readonly AcquireRequest[];

export function isList(request: Acquire): request is readonly AcquireRequest[] {
  return Array.isArray(request);
}

/** How long `acquire` waits. */
export interface AcquireOptions {
  /** Give up if the tokens will not be there in time. Default: wait as long as it takes. */
  readonly timeoutMs?: number;
  /** Give up when aborted; nothing is taken then. */
  readonly signal?: AbortSignal;
}

/** Counters since the start, of policies, quota and store. */
export interface RateLimiterStats {
  /** Keys that have a bucket of their own in this process. */
  readonly keys: number;
  readonly policies: Readonly<Record<string, PolicyCounters>>;
  /** Callers of `acquire` that wait now, by policy or app; those without any are left out. */
  readonly waiting: Readonly<Record<string, number>>;
  /** Only where the store is shared. */
  readonly store?: StoreStats;
  /** Only where there are quotas. */
  readonly quota?: QuotaStats;
}

/** The key of a policy whose rate is asked for, of all tiers or of one. */
export type RateQuery = Pick<PolicyRequest, 'policy' | 'key' | 'tier'>;

/** The limits of a policy, as a caller may see them. */
export interface PolicyInfo {
  readonly name: string;
  readonly tiers: ReadonlyMap<string, LimitInfo>;
  /** Of callers without a tier. */
  readonly base: LimitInfo;
  /** The failure mode while the store does not answer; undefined if the policy does not use it. */
  readonly failureMode: FailureMode | undefined;
}

/** The figures of a limit in force. */
export interface LimitInfo {
  /** Tokens that the bucket or window holds. */
  readonly capacity: number;
  /** How long it takes until all of them are back. */
  readonly windowMs: number;
}

/** Decisions on quotas, of this process. */
export interface QuotaStats {
  readonly decisions: number;
  /** Decisions made from tokens at hand, or from a shortage known here. */
  readonly localHits: number;
  /** Calls to the store, which carry reports and requests of all apps. */
  readonly remoteCalls: number;
  readonly apps: Readonly<Record<string, AppQuotaStats>>;
}

/** Decisions of this process for an app. */
export interface AppQuotaStats {
  readonly mode: NodeMode;
  /** Tokens at hand. */
  readonly tokens: number;
  readonly allowed: number;
  readonly denied: number;
  /** The same decisions by source. */
  readonly bySource: Readonly<Record<DecisionSource, AppSourceStats>>;
  /** Tokens of the requests that were allowed. */
  readonly used: number;
  /** Tokens per second, of the whole fleet. */
  readonly guaranteed: number;
  readonly burst: number;
  /** Nodes that may serve the app, whether they ask for it or not: while the store is away each has its part. */
  readonly nodes: number;
}

/** Decisions for an app, by where they were made. */
export interface AppSourceStats {
  readonly allowed: number;
  readonly denied: number;
  /** Of those denied: not for the app's own quota, but because all apps together ask for too much. */
  readonly deniedByCluster: number;
}

/** A connection to Redis, and the first part of every key there. */
export interface SharedRedis {
  readonly client: Redis | Cluster;
  readonly prefix: string;
  /** A decision waits for it no longer than this. */
  readonly timeoutMs: number;
}

/** The quota that all apps share. Abstract, so that it is its own injection token. */
export abstract class ClusterQuota {
  /** Capacity, outstanding leases, and each app's grants, demand and consumption. */
  abstract status(): Promise<QuotaStatus>;
}

/**
 * Decides whether requests may go. Abstract, so that it is its own injection token.
 *
 * A method of type `T | Promise<T>` answers at once whenever it can: always with the memory
 * store, and with Redis for a leased key, a remembered denial or while Redis is away.
 */
export abstract class RateLimiter {
  /** Takes the tokens if they are there; never waits for them. */
  abstract tryAcquire(request: Acquire): Decision | Promise<Decision>;

  /** One token (the policy's cost), as a plain yes or no. */
  abstract allow(policy: PolicyName, key: string, limit?: LimitInput): boolean | Promise<boolean>;

  /** So many tokens, as a plain yes or no. */
  abstract allowN(
    policy: PolicyName,
    key: string,
    cost: number,
    limit?: LimitInput,
  ): boolean | Promise<boolean>;

  /**
   * Waits until the tokens are there, in the order in which callers came for the same key (of the
   * first policy, if several are asked). Resolves when they were taken, and only then: rejects with
   * AcquireTimeoutError, TooManyWaitersError, or the signal's reason.
   */
  abstract acquire(request: Acquire, options?: AcquireOptions): Promise<Decision>;

  /**
   * Gives tokens back that were taken and not used. A bucket never gets more than it holds. With the
   * decision that took them they go to where they came from also if Redis was away, and they were of
   * this process's share.
   */
  abstract refund(request: Acquire, decision?: Decision): void | Promise<void>;

  /** The decision that `tryAcquire` would make, without taking anything. `remaining` counts the tokens there now. */
  abstract peek(request: PolicyRequest): Decision | Promise<Decision>;

  /** Forgets what the key has used. */
  abstract reset(request: PolicyRequest): void | Promise<void>;

  /** Adds policies while the limiter runs; a name that is taken is an error. */
  abstract define(policies: Readonly<Record<string, PolicyInput>>): void;

  /**
   * Checks all limits of a configuration and compiles them; throws, and changes nothing, if any is
   * wrong. The result installs them: all at one instant, and without fail. What was used stays used:
   * a bucket of other figures is as full as it was, and one that has not changed is not touched. Only
   * another algorithm or scope starts anew.
   */
  abstract prepare(change: LimitsChange): () => void;

  /** The revision of the limits that were installed last; 0 if they are those of the options. */
  abstract get revision(): number;

  /** The figures of a policy, by tier; undefined if there is none of that name. */
  abstract policy(name: string): PolicyInfo | undefined;

  /** Throws if a request to the policy, of that cost, could not bring such figures along. */
  abstract checkLimit(policy: string, limit: LimitInput, cost?: number): void;

  /** The names of all policies. */
  abstract policyNames(): string[];

  /**
   * The values that most was asked for of in the last period, by requests to this process. Of policies with
   * `hot`; of others none. At most 64 are known.
   */
  abstract hotValues(policy: string, count?: number): HotValue[];

  /**
   * Tokens per second that a value asked for in the last period, by requests to this process, allowed or not. Of
   * policies with `hot`; of others undefined.
   */
  currentRate(_query: RateQuery): number | undefined {
    return undefined;
  }

  /** @internal How many values are in demand, of policies with `hot`. */
  hotCounts(): Readonly<Record<string, number>> {
    return {};
  }

  /** Listens; the result stops listening. */
  abstract on<N extends keyof RateLimiterEvents>(
    name: N,
    listener: (event: RateLimiterEvents[N]) => void,
  ): () => void;

  /** The quota that all apps share; throws if the options have none. */
  abstract get quota(): ClusterQuota;

  /** The Redis that the fleet shares, for what else belongs to it; undefined in memory. @internal */
  abstract get redis(): SharedRedis | undefined;

  /** @internal The keys that are denied most, once somebody watches them; undefined where nothing is denied. */
  get deniedKeys(): DeniedKeys | undefined {
    return undefined;
  }

  /** Whether there are policies that shrink under load. */
  get isAdaptive(): boolean {
    return false;
  }

  /**
   * The part of their limits that policies with `adaptive: true` have, above 0 and at most 1. Where `overload` is
   * enabled it is set by the load of this process.
   */
  load(_factor: number): void {}

  /** @internal A request under `key: 'user'` had no user. */
  countAnonymous(_policy: string): void {}

  /** Counts since the start. */
  abstract stats(): RateLimiterStats;

  /** Resolves once the store answers: at once in memory, after the first connection on Redis. */
  abstract ready(timeoutMs?: number): Promise<void>;

  /** Stops timers, rejects waiters, and closes connections that it opened. */
  abstract close(): Promise<void>;
}
