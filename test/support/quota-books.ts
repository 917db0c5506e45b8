import { type QuotaLedger } from '../../lib/algorithms/quota/quota-ledger.js';
import { UNITS_PER_TOKEN, type QuotaLimits } from '../../lib/algorithms/quota/quota-limits.js';
import { type QuotaCall, type QuotaReply } from '../../lib/algorithms/quota/quota-protocol.js';
import { leaseName, type LedgerState } from '../../lib/algorithms/quota/quota-state.js';

/** Tokens of an app that were granted or admitted at an instant. */
export interface Movement {
  readonly atMicros: number;
  readonly app: number;
  readonly tokens: number;
}

/** One lease as an outsider knows it: the open tokens of each app, and their deadline. */
interface OpenLease {
  readonly tokens: number[];
  deadlineMicros: number;
}

/** The tokens of one app since the state began, as the replies tell. */
interface Totals {
  granted: number;
  used: number;
  destroyed: number;
}

/**
 * Double entry for a ledger: keeps its own accounts from calls and replies alone, and holds the
 * ledger's figures against them after every call. No token may be in two accounts, or in none.
 */
export class QuotaBooks {
  /** Tokens that the store granted; less than 0 for those that came back. */
  readonly grants: Movement[] = [];
  /** When the state began. */
  firstMicros = 0;
  /** Units that flowed in and found the cluster's bucket full. */
  overflowedUnits = 0;
  /** Units that ended with a lease, neither used nor given back. */
  destroyedUnits = 0;
  private readonly leases = new Map<string, OpenLease>();
  private totals: Totals[] = [];
  private wasLost = false;

  constructor(
    private readonly ledger: QuotaLedger,
    private limits: QuotaLimits,
  ) {}

  /** Other limits; what is open, granted and used stays what it is. */
  change(nowMicros: number, limits: QuotaLimits): void {
    this.ledger.change(nowMicros, limits);
    this.limits = limits;
    if (this.totals.length === 0) return;
    for (const _added of limits.apps.slice(this.totals.length)) {
      this.totals.push(newTotals());
      for (const { tokens } of this.leases.values()) tokens.push(0);
    }
    this.checkApps();
  }

  settle(nowMicros: number, call: QuotaCall): QuotaReply {
    const before = figuresOf(this.ledger.peek());
    const reply = this.ledger.settle(nowMicros, call);
    const after = figuresOf(this.ledger.peek());
    if (after.epoch === before.epoch && after.sequence === before.sequence) {
      // The same call again: whatever it says, nothing may have moved.
      mustBe('state after a repeated call', JSON.stringify(after), JSON.stringify(before));
      return reply;
    }
    const isNew = before.sequence === 0 || after.epoch !== before.epoch;
    if (isNew) this.begin(reply.nowMicros);
    this.expire(reply.nowMicros);
    const moved = this.enter(call, reply);
    if (!isNew) this.checkCluster(before, after, moved);
    this.checkApps();
    return reply;
  }

  /** A new state; after the first one, nodes may hold tokens that it does not know of. */
  private begin(nowMicros: number): void {
    this.firstMicros = nowMicros;
    this.wasLost = this.totals.length > 0;
    this.leases.clear();
    this.totals = this.limits.apps.map(newTotals);
  }

  private expire(nowMicros: number): void {
    for (const [name, lease] of this.leases) {
      if (lease.deadlineMicros <= nowMicros) this.end(name, lease);
    }
  }

  private end(name: string, lease: OpenLease): void {
    for (const [app, open] of lease.tokens.entries()) {
      this.totals[app]!.destroyed += open;
      this.destroyedUnits += open * UNITS_PER_TOKEN;
    }
    this.leases.delete(name);
  }

  /** Writes a call into the accounts; tells how much left the cluster bucket by it. */
  private enter(call: QuotaCall, reply: QuotaReply): number {
    const name = leaseName(call);
    // Tokens reported under a lease that has ended are no longer in any account.
    const known = this.leases.get(name);
    const lease = known ?? { tokens: this.limits.apps.map(() => 0), deadlineMicros: 0 };
    this.leases.set(name, lease);
    let moved = 0;
    for (const [turn, { app, used, returned, needs }] of call.apps.entries()) {
      const total = this.totals[app]!;
      let back = 0;
      if (known !== undefined) {
        const open = lease.tokens[app]!;
        if (!this.wasLost) mustNotExceed('reported', used + returned, open);
        const spent = Math.min(used, open);
        back = Math.min(returned, open - spent);
        lease.tokens[app] = open - spent - back;
        total.used += spent;
      }
      const { granted, needs: passed } = reply.apps[turn]!;
      const taken = needs.reduce((sum, { cost }, i) => sum + cost * passed[i]!, 0);
      mustBeWholeWithin('granted', granted, call.apps[turn]!.want);
      for (const [i, { count }] of needs.entries()) mustBeWholeWithin('needs', passed[i]!, count);
      const tokens = granted + taken - back;
      lease.tokens[app]! += granted;
      total.granted += tokens;
      total.used += taken;
      moved += tokens;
      this.grants.push({ atMicros: reply.nowMicros, app, tokens });
    }
    const deadline = reply.nowMicros + reply.leaseTtlMicros;
    lease.deadlineMicros = Math.max(lease.deadlineMicros, deadline);
    if (call.leaving) this.end(name, lease);
    return moved;
  }

  /** Units that flowed in are there, or have been granted, or met a full bucket. */
  private checkCluster(before: Figures, after: Figures, moved: number): void {
    if (this.limits.capacity === 0) return;
    const inflow = this.limits.capacity * (after.lastMicros - before.lastMicros);
    const filledTo = after.level + moved * UNITS_PER_TOKEN;
    const overflow = before.level + inflow - filledTo;
    mustBeWithin('overflow', overflow, Infinity);
    const { depth: deepest } = this.limits;
    mustBeWithin('level', after.level, Math.max(0, deepest - after.outstanding));
    // After a change more may be leased than the bucket holds: then what comes back is gone too.
    if (overflow === 0 || before.outstanding > deepest) return;
    this.overflowedUnits += overflow;
    const isLearning = after.lastMicros < after.learningUntil;
    const depth = isLearning ? this.limits.learningDepth : this.limits.depth;
    mustBe('level that overflowed', filledTo, Math.max(0, depth - before.outstanding));
  }

  private checkApps(): void {
    const { apps, cluster } = this.ledger.peek()!;
    let outstanding = 0;
    for (const [app, own] of apps.entries()) {
      const limits = this.limits.apps[app]!;
      const { granted, used, destroyed } = this.totals[app]!;
      let open = 0;
      for (const lease of this.leases.values()) open += lease.tokens[app]!;
      outstanding += open;
      mustBe('granted', granted, used + open + destroyed);
      mustBe('outstanding', own.outstanding, open * UNITS_PER_TOKEN);
      mustBe('used', own.used, used);
      mustBe('granted in the ledger', own.granted, granted);
      mustBeWithin('stock', own.stock, limits.stockDepth);
      mustBeWithin('credit', own.credit, limits.creditDepth);
      mustBeWithin('room', own.room, Math.max(0, limits.ceilingDepth - own.outstanding));
      mustBeWithin('share', own.share, Infinity);
    }
    mustBe('outstanding of all', cluster.outstanding, outstanding * UNITS_PER_TOKEN);
  }
}

function newTotals(): Totals {
  return { granted: 0, used: 0, destroyed: 0 };
}

interface Figures {
  readonly epoch: number;
  readonly sequence: number;
  readonly lastMicros: number;
  readonly learningUntil: number;
  readonly level: number;
  readonly outstanding: number;
  readonly apps: LedgerState['apps'];
}

function figuresOf(state: Readonly<LedgerState> | undefined): Figures {
  const cluster = state?.cluster ?? {
    epoch: 0,
    sequence: 0,
    lastMicros: 0,
    learningUntil: 0,
    level: 0,
    outstanding: 0,
  };
  return { ...cluster, apps: (state?.apps ?? []).map((own) => ({ ...own })) };
}

// Jest's own matchers would take most of the time of ten thousand histories.

function mustBe(what: string, found: number | string, expected: number | string): void {
  if (found !== expected) throw new Error(`${what} is ${found}, must be ${expected}`);
}

function mustNotExceed(what: string, found: number, most: number): void {
  if (!(found <= most)) throw new Error(`${what} is ${found}, more than ${most}`);
}

function mustBeWithin(what: string, found: number, most: number): void {
  mustNotExceed(what, found, most);
  if (!(found >= 0)) throw new Error(`${what} is ${found}, less than 0`);
}

function mustBeWholeWithin(what: string, found: number, most: number): void {
  mustBeWithin(what, found, most);
  if (!Number.isSafeInteger(found)) throw new Error(`${what} is ${found}, no whole number`);
}
