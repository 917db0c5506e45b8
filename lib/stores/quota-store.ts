import { type QuotaFigures } from '../algorithms/quota/quota-limits.js';
import { type QuotaCall, type QuotaReply } from '../algorithms/quota/quota-protocol.js';
import { type QuotaStatus } from '../algorithms/quota/quota-status.js';

/** Where the cluster's ledger is kept. */
export interface QuotaStore {
  /**
   * Settles a node's call. May answer at once; else the promise settles no later than the store's
   * deadline, and rejects with a StoreUnavailableError if there was no answer.
   */
  settle(call: QuotaCall): QuotaReply | Promise<QuotaReply>;
}

/** A ledger whose limits may change. */
export interface QuotaLimitsStore {
  /**
   * Goes by these figures from now on, unless it has some of a later revision. Never throws and makes
   * nobody wait: a store that cannot be reached is told with the next call that reaches it. Apps that
   * are new are numbered after those that are known; see `numbered`.
   */
  apply(figures: QuotaFigures, revision: number): void;
}

/** How many nodes may serve an app. */
export type NodesOf = (app: string) => number;

/** `isAll` is false if the count has only just begun: then there may be more. */
export type NodesHeard = (nodesOf: NodesOf, isAll: boolean) => void;

/** Where nodes are counted by the apps that they may serve. */
export interface QuotaMembers {
  /**
   * Counts a node among those of some apps, or of all, until it leaves; and tells how many there are
   * whenever it hears of it. Never throws and makes nobody wait.
   */
  join(member: string, apps: readonly string[] | undefined, heard: NodesHeard): void;
  /** The node serves this app, too. */
  serve(app: string): void;
  leave(): Promise<void>;
}

/** A ledger that also reports its status. */
export interface QuotaOverview {
  status(): Promise<QuotaStatus>;
}
