import { ConsumptionBook } from './consumption.js';
import {
  bookDebt,
  giveBack,
  offer,
  refund,
  take,
  unitsOf,
  useUp,
  wholeTokens,
} from './quota-grant.js';
import { UNITS_PER_TOKEN, type QuotaLimits } from './quota-limits.js';
import {
  type AppCall,
  type AppReply,
  type QuotaCall,
  type QuotaReply,
  type Shortage,
} from './quota-protocol.js';
import {
  overloadTick,
  rateDuringOverload,
  refill,
  rescale,
  sharePerSecond,
} from './quota-refill.js';
import {
  heldBy,
  leaseName,
  newState,
  type AppLease,
  type NodeLease,
  type LedgerState,
} from './quota-state.js';
import { statusOf, type QuotaStatus } from './quota-status.js';

/** A clock that is behind by no more than this is waited for; one that is further behind has stepped. */
const CLOCK_STEP_MICROS = 1_000_000;

/**
 * The cluster and its apps, as a ledger that is settled call by call.
 *
 * The order is part of the proof: refill up to now under the old outstanding, then expire overdue
 * leases, then take in reports and what comes back, and only then grant. A token is in a bucket, or
 * leased, or used; `level + outstanding` never exceeds the depth, so in any span Δ no more than
 * capacity × Δ + depth is admitted, however many nodes come, go and crash.
 */
export class QuotaLedger {
  readonly consumption = new ConsumptionBook();
  private state: LedgerState | undefined;

  constructor(private limits: QuotaLimits) {}

  settle(nowMicros: number, call: QuotaCall): QuotaReply {
    const { limits } = this;
    // A clock in process counts fractions; levels must stay whole numbers of units.
    const clock = Math.floor(nowMicros);
    const offset = this.offsetAt(clock);
    const state = this.stateFor(clock + offset, call);
    const name = leaseName(call);
    const known = state.leases.get(name);
    if (known?.reply !== undefined && call.seq <= known.seq) return known.reply;
    const now = Math.max(clock + offset, state.cluster.lastMicros);
    state.cluster.offsetMicros = offset;
    refill(limits, state, now);
    expireLeases(state, now);
    const lease = leaseOf(state, name);
    for (const app of call.apps) applyReport(limits, state, lease, app, now);
    overloadTick(limits, state, now);
    state.cluster.sequence++;
    const leaseCap = leaseCapOf(limits, state, lease);
    const apps = grantAll(limits, state, lease, leaseCap, call, now);
    const { epoch, sequence, overloaded } = state.cluster;
    const nodes = state.leases.size;
    const { revision, leaseTtlMicros } = limits;
    // One literal: put together from two it took a fifth of the simulator's time.
    const reply: QuotaReply = {
      epoch,
      sequence,
      nowMicros: now,
      overloaded,
      nodes,
      leaseCap,
      revision,
      leaseTtlMicros,
      apps,
    };
    forgetIdle(state, lease, call);
    lease.seq = call.seq;
    // Where leases last shorter than before: the node may not hear of it, and was promised more.
    lease.deadlineMicros = Math.max(lease.deadlineMicros, now + leaseTtlMicros);
    lease.reply = reply;
    if (call.leaving) endLease(state, name, lease);
    this.consumption.enter(call);
    return reply;
  }

  /**
   * Other limits from now on. What has flowed in so far came under the old ones, and each bucket
   * stays as full as it was. Apps may be added and retired; other apps under the same numbers are
   * like a loss, because whose the tokens are is unknown then.
   */
  change(nowMicros: number, limits: QuotaLimits): void {
    const { state, limits: old } = this;
    this.limits = limits;
    if (state === undefined) return;
    const clock = Math.floor(nowMicros);
    const offset = this.offsetAt(clock);
    const now = Math.max(clock + offset, state.cluster.lastMicros);
    if (!old.apps.every(({ app }, index) => limits.apps[index]?.app === app)) {
      this.state = newState(limits, now, state.cluster.epoch + 1, true);
      this.state.cluster.offsetMicros = offset;
      return;
    }
    state.cluster.offsetMicros = offset;
    refill(old, state, now);
    rescale(old, limits, state, now);
  }

  /** How things stand; before the first call as they will be at it. */
  status(): QuotaStatus {
    const { limits, consumption } = this;
    const state = this.state ?? newState(limits, 0, 0, false);
    return statusOf({ limits, state, consumption: consumption.apps });
  }

  /** The state as it is, for whoever watches; undefined before the first call. */
  peek(): Readonly<LedgerState> | undefined {
    return this.state;
  }

  /** Forgets everything, as a store does that loses its data. */
  lose(): void {
    this.state = undefined;
  }

  /** The state may be of another server than before: a new epoch begins, empty. */
  distrust(nowMicros: number, seenEpoch: number): void {
    const clock = Math.floor(nowMicros);
    const offset = this.offsetAt(clock);
    const epoch = Math.max(this.state?.cluster.epoch ?? 0, seenEpoch) + 1;
    this.state = newState(this.limits, clock + offset, epoch, true);
    this.state.cluster.offsetMicros = offset;
  }

  /** The same books, which from now on go their own way, as those of a replica do. */
  copy(): QuotaLedger {
    const copy = new QuotaLedger(this.limits);
    copy.state = structuredClone(this.state);
    return copy;
  }

  /**
   * The ledger's time less the clock's. A clock that has stepped back goes on from where it was: every
   * level, lease and deadline stays as it is, and tokens flow at once.
   */
  private offsetAt(clock: number): number {
    if (this.state === undefined) return 0;
    const { lastMicros, offsetMicros } = this.state.cluster;
    const hasStepped = lastMicros - (clock + offsetMicros) > CLOCK_STEP_MICROS;
    return hasStepped ? lastMicros - clock : offsetMicros;
  }

  /** A missing state, or one that a node has seen a later version of, starts a new epoch. */
  private stateFor(now: number, call: QuotaCall): LedgerState {
    const { state } = this;
    if (state !== undefined && !isBehind(state, call)) return state;
    const isAfterLoss = state !== undefined || call.seenEpoch > 0;
    const epoch = Math.max(state?.cluster.epoch ?? 0, call.seenEpoch) + 1;
    this.state = newState(this.limits, now, epoch, isAfterLoss);
    return this.state;
  }
}

function isBehind({ cluster }: LedgerState, { seenEpoch, seenSequence }: QuotaCall): boolean {
  if (seenEpoch !== cluster.epoch) return seenEpoch > cluster.epoch;
  return seenSequence > cluster.sequence;
}

/** Tokens leased and neither reported nor returned in time are destroyed: they may have been used. */
function expireLeases(state: LedgerState, now: number): void {
  for (const [name, lease] of state.leases) {
    if (lease.deadlineMicros <= now) endLease(state, name, lease);
  }
}

function endLease(state: LedgerState, name: string, lease: NodeLease): void {
  for (const [index, held] of lease.apps) {
    const own = state.apps[index]!;
    own.outstanding -= heldBy(held);
    own.demand -= held.demand;
    own.nodes--;
    state.cluster.outstanding -= heldBy(held);
  }
  state.leases.delete(name);
}

function leaseOf(state: LedgerState, name: string): NodeLease {
  let lease = state.leases.get(name);
  if (lease === undefined) {
    lease = { seq: 0, deadlineMicros: 0, reply: undefined, apps: new Map() };
    state.leases.set(name, lease);
  }
  return lease;
}

function applyReport(
  limits: QuotaLimits,
  state: LedgerState,
  lease: NodeLease,
  call: AppCall,
  now: number,
): void {
  const own = state.apps[call.app]!;
  let held = lease.apps.get(call.app);
  if (held === undefined) {
    held = { fromStock: 0, fromCredit: 0, lent: 0, demand: 0 };
    lease.apps.set(call.app, held);
    own.nodes++;
  }
  own.demand += call.demand - held.demand;
  held.demand = call.demand;
  useUp(state, call.app, held, call.used * UNITS_PER_TOKEN);
  giveBack(limits, state, call.app, held, call.returned * UNITS_PER_TOKEN);
  if (call.refunded !== undefined) refund(limits, state, call.app, call.refunded, 0);
  if (call.late !== undefined) {
    const { tokens, takenMicros } = call.late;
    refund(limits, state, call.app, tokens, Math.max(0, now - takenMicros));
  }
  if (call.owed !== undefined) bookDebt(limits, state, call.app, call.owed);
}

/** A node that holds nothing of an app and asks for nothing does not count among its nodes. */
function forgetIdle(state: LedgerState, lease: NodeLease, call: QuotaCall): void {
  for (const { app, want, needs } of call.apps) {
    const held = lease.apps.get(app);
    if (held === undefined || held.demand + want + needs.length + heldBy(held) > 0) continue;
    lease.apps.delete(app);
    state.apps[app]!.nodes--;
  }
}

/** Requests that wait come before stock for those that may come; higher priorities come first. */
function grantAll(
  limits: QuotaLimits,
  state: LedgerState,
  lease: NodeLease,
  leaseCap: number,
  call: QuotaCall,
  now: number,
): AppReply[] {
  const order = call.apps
    .map((app, position) => ({ app, position }))
    .sort((a, b) => weightOf(limits, b.app) - weightOf(limits, a.app) || a.position - b.position);
  const needs = order.map(({ app }) => grantNeeds(limits, state, app, now));
  const replies: AppReply[] = [];
  for (const [turn, { app, position }] of order.entries()) {
    const want = grantWant(limits, state, lease, leaseCap, app, now);
    const { granted, missing, limitedBy } = needs[turn]!;
    const shortage = limitedBy === 'none' ? want.limitedBy : limitedBy;
    replies[position] = {
      app: app.app,
      granted: want.tokens,
      needs: granted,
      shortage,
      retryAfterMicros: retryAfter(limits, state, app.app, shortage, missing),
      remaining: Math.max(0, floorTokens(state.apps[app.app]!.stock)),
      nodes: state.apps[app.app]!.nodes,
      share: sharePerSecond(state, app.app),
    };
  }
  return replies;
}

interface NeedsGranted {
  readonly granted: number[];
  /** Units of the first request that was not granted, or of one token. */
  readonly missing: number;
  readonly limitedBy: Shortage;
}

function grantNeeds(
  limits: QuotaLimits,
  state: LedgerState,
  call: AppCall,
  now: number,
): NeedsGranted {
  const granted: number[] = [];
  let missing = UNITS_PER_TOKEN;
  let limitedBy: Shortage = 'none';
  for (const { cost, count } of call.needs) {
    const units = cost * UNITS_PER_TOKEN;
    const most = offer(limits, state, call.app, count * units);
    const passed = Math.floor(unitsOf(most) / units);
    const made = offer(limits, state, call.app, passed * units);
    take(limits, state, call.app, made, now);
    state.apps[call.app]!.used += passed * cost;
    granted.push(passed);
    if (passed < count && limitedBy === 'none') [missing, limitedBy] = [units, most.limitedBy];
  }
  return { granted, missing, limitedBy };
}

/**
 * A node may hold so much and no more; not getting what is beyond that is no shortage. But having all
 * that it wants is one where the others would go without until they call again: else a node that
 * comes at the right moment takes luck for plenty, and calls for every request once it is used up.
 */
function grantWant(
  limits: QuotaLimits,
  state: LedgerState,
  lease: NodeLease,
  leaseCap: number,
  call: AppCall,
  now: number,
): { tokens: number; limitedBy: Shortage } {
  let holding = 0;
  for (const held of lease.apps.values()) holding += heldBy(held);
  const free = leaseCap - ceilTokens(holding);
  const wanted = Math.max(0, Math.min(call.want, free, leasable(limits, state, call.app)));
  const ahead = call.want === 0 ? 0 : excessUntilNextCall(limits, state, call.app);
  const asked = Math.max(wanted * UNITS_PER_TOKEN, ahead);
  const made = wholeTokens(offer(limits, state, call.app, asked), wanted);
  const units = unitsOf(made);
  take(limits, state, call.app, made, now);
  addTo(lease.apps.get(call.app)!, made);
  state.apps[call.app]!.outstanding += units;
  state.cluster.outstanding += units;
  return { tokens: units / UNITS_PER_TOKEN, limitedBy: made.limitedBy };
}

/** Units by which all nodes ask for more in one pace than the app may have. */
function excessUntilNextCall(limits: QuotaLimits, state: LedgerState, index: number): number {
  const { guaranteed, burst } = limits.apps[index]!;
  const { demand } = state.apps[index]!;
  const may = Math.min(burst, rateDuringOverload(state, index, guaranteed));
  return Math.max(0, Math.ceil((demand - may) * limits.paceMicros));
}

function addTo(held: AppLease, made: Omit<AppLease, 'demand'>): void {
  held.fromStock += made.fromStock;
  held.fromCredit += made.fromCredit;
  held.lent += made.lent;
}

function weightOf(limits: QuotaLimits, call: AppCall): number {
  return limits.apps[call.app]!.weight;
}

/**
 * Half the burst for all nodes together, so that what is held never starves a guarantee: to each its
 * part of the demand, and an even part as long as that is no more than twice as much. Where a few nodes
 * have most of the demand, even parts let the others fill the half with stock that lies idle, and the
 * busy ones were kept from a full bucket: utilisation 0.93 of a Zipf load on 80 nodes.
 */
function leaseCapOf(limits: QuotaLimits, state: LedgerState, lease: NodeLease): number {
  const half = Math.floor(limits.leaseBudget / 2);
  let own = 0;
  for (const held of lease.apps.values()) own += held.demand;
  let all = 0;
  for (const { demand } of state.apps) all += demand;
  // Rounded up, or many nodes that hold a token or two each would be kept from a part of the capacity.
  const even = Math.ceil(half / Math.max(1, state.leases.size));
  const byDemand = Math.ceil((half * own) / all);
  const part = own > 0 ? Math.max(byDemand, Math.min(even, 2 * byDemand)) : even;
  return Math.min(half, Math.max(limits.reserveTarget, part));
}

/**
 * The tokens of the half that nobody has leased yet, because the caps of nodes that come one by one add up to
 * more; and of half the app's ceiling, so that its idle nodes leave something to those in need.
 */
function leasable(limits: QuotaLimits, { apps, cluster }: LedgerState, index: number): number {
  const half = floorTokens(limits.apps[index]!.ceilingDepth / 2);
  const ofApp = half - ceilTokens(apps[index]!.outstanding);
  if (limits.capacity === 0) return ofApp;
  return Math.min(ofApp, Math.floor(limits.leaseBudget / 2) - ceilTokens(cluster.outstanding));
}

function floorTokens(units: number): number {
  return Math.floor(units / UNITS_PER_TOKEN);
}

function ceilTokens(units: number): number {
  return Math.ceil(units / UNITS_PER_TOKEN);
}

/** When the guarantee alone, or the capacity if that is what is short, will have covered it. */
function retryAfter(
  limits: QuotaLimits,
  state: LedgerState,
  index: number,
  shortage: Shortage,
  missing: number,
): number {
  if (shortage === 'none') return 0;
  const { guaranteed } = limits.apps[index]!;
  const short = Math.max(0, missing - state.apps[index]!.stock);
  const rate = shortage === 'cluster' ? Math.max(limits.capacity, guaranteed) : guaranteed;
  return rate === 0 ? limits.paceMicros : Math.max(1000, Math.ceil(short / rate));
}
