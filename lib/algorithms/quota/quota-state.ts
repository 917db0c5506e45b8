import { type QuotaCall, type QuotaReply } from './quota-protocol.js';
import { type AppLimits, type QuotaLimits } from './quota-limits.js';

/**
 * Levels in units (millionths of a token), instants in microseconds of the store's clock. A level is
 * below 0 while there is a debt, which is paid by what flows in.
 */
export interface LedgerClusterState {
  lastMicros: number;
  /**
   * The time that is added to the store's clock. It grows when that clock steps back, so that the instants of
   * the ledger do not: deadlines, ticks and what nodes have heard stay comparable.
   */
  offsetMicros: number;
  level: number;
  /** Leased to nodes, and not yet reported as used or given back. */
  outstanding: number;
  epoch: number;
  /** Grows with every call; a node that has seen a later one knows of a loss. */
  sequence: number;
  /** The instant until which leases from before a loss may still be in use. */
  learningUntil: number;
  overloaded: boolean;
  tickMicros: number;
}

export interface LedgerAppState {
  /** Level of the guaranteed bucket. */
  stock: number;
  credit: number;
  /** When credit was first drawn on since it was full; 0 if it is full. */
  creditSince: number;
  /** Level of the ceiling bucket. */
  room: number;
  outstanding: number;
  /**
   * Level of the bucket that lending runs through during overload, and its rate in units per
   * millisecond: a rate per microsecond would cut up to one token a second off each app.
   */
  share: number;
  shareRate: number;
  /** Sum over the nodes, in tokens per second. */
  demand: number;
  nodes: number;
  /** Tokens granted, and tokens used, ever: whole ones, and 285 years of a million per second are exact. */
  granted: number;
  used: number;
}

/** The tokens that a node holds of one app, by the bucket that they came from. */
export interface AppLease {
  fromStock: number;
  fromCredit: number;
  lent: number;
  demand: number;
}

export interface NodeLease {
  seq: number;
  deadlineMicros: number;
  reply: QuotaReply | undefined;
  readonly apps: Map<number, AppLease>;
}

export interface LedgerState {
  readonly cluster: LedgerClusterState;
  readonly apps: LedgerAppState[];
  readonly leases: Map<string, NodeLease>;
}

/**
 * A new state: full where nobody has seen one before, so that the first request of a new user
 * passes; empty after a loss, because what was granted before it may still be in use.
 */
export function newState(
  limits: QuotaLimits,
  now: number,
  epoch: number,
  isAfterLoss: boolean,
): LedgerState {
  return {
    cluster: {
      lastMicros: now,
      offsetMicros: 0,
      level: isAfterLoss || limits.capacity === 0 ? 0 : limits.depth,
      outstanding: 0,
      epoch,
      sequence: 0,
      learningUntil: isAfterLoss ? now + limits.leaseTtlMicros : 0,
      overloaded: false,
      tickMicros: now,
    },
    apps: limits.apps.map((app) => newAppState(app, now, isAfterLoss)),
    leases: new Map(),
  };
}

export function newAppState(limits: AppLimits, now: number, isAfterLoss: boolean): LedgerAppState {
  return {
    stock: isAfterLoss ? 0 : limits.stockDepth,
    credit: isAfterLoss ? 0 : limits.creditDepth,
    creditSince: isAfterLoss ? now : 0,
    room: isAfterLoss ? 0 : limits.ceilingDepth,
    outstanding: 0,
    share: 0,
    shareRate: 0,
    demand: 0,
    nodes: 0,
    granted: 0,
    used: 0,
  };
}

/** A node's own name may hold any character, so it comes last: no two leases share a name. */
export function leaseName({ node, incarnation }: QuotaCall): string {
  return `${incarnation}:${node}`;
}

export function heldBy(lease: AppLease): number {
  return lease.fromStock + lease.fromCredit + lease.lent;
}
