import { Network } from '../engine/network.js';
import { seededRandom } from '../engine/seeded-random.js';
import { VirtualTime } from '../engine/virtual-time.js';
import { VirtualLinks } from '../redis/virtual-links.js';
import { VirtualRedis } from '../redis/virtual-redis.js';
import { FaultInjector, type Stage } from './fault-injector.js';
import { FleetView, type Broken } from './fleet-view.js';
import { type History, type HistoryEvent } from './history.js';
import { LimitsInForce } from './limits-in-force.js';
import { Liveness } from './liveness.js';
import { quotaCost, quotaOf } from './plan.js';
import { PolicyBounds } from './policy-bounds.js';
import { QuotaBounds } from './quota-bounds.js';
import { SimulatedProcess, type Observer } from './simulated-process.js';

/** The longest chain of promises from a reply to a decision, with room to spare. */
const TURNS_TO_SETTLE = 24;
/** A change comes to the processes within this time of each other. */
const CHANGE_SPREAD_MS = 100;
/** Within this all processes have heard of a change, and no lease is older. */
const CHANGE_SETTLES_MS = 1500;

export interface HistoryResult {
  /** The first check that failed. */
  readonly broken: Broken | undefined;
  readonly decisions: number;
  /** Tokens. */
  readonly admitted: number;
}

/** Lives through a history, and stops at the first bound that does not hold. */
export function runHistory(history: History): Promise<HistoryResult> {
  return new HistoryRun(history).run();
}

export class HistoryRun implements Observer, Stage {
  readonly time = new VirtualTime(TURNS_TO_SETTLE);
  readonly links: VirtualLinks;
  readonly server: VirtualRedis;
  readonly slots: (SimulatedProcess | undefined)[] = [];
  readonly limits: LimitsInForce;
  readonly decisionTimeoutMs: number;
  broken: Broken | undefined;
  onAdmitted: ((limit: number, tokens: number) => void) | undefined;
  private readonly fleet = new FleetView();
  private readonly faults = new FaultInjector(this);
  private readonly random: () => number;
  private readonly policies: readonly PolicyBounds[];
  private readonly quota: QuotaBounds | undefined;
  private started = 0;
  private decisions = 0;
  private admittedTokens = 0;

  constructor(readonly history: History) {
    const { plan, seed } = history;
    this.limits = new LimitsInForce(plan);
    this.decisionTimeoutMs = plan.decisionTimeoutMs;
    this.random = seededRandom(seed + 1);
    const network = new Network(this.time, seededRandom(seed + 2), plan.decisionTimeoutMs);
    this.server = new VirtualRedis(this.time, {
      bucket: (process, key, tokens, isRefund) => {
        this.bucketMoved(process, key, tokens, isRefund);
      },
      quota: (process, app, tokens) => this.quota?.granted(process, app, tokens),
      called: (process) => this.quota?.called(process, this.time.seconds()),
      nodes: (process, nodes, of) => this.fleet.told(process, nodes, of),
    });
    this.links = new VirtualLinks(this.time, network, this.server);
    this.policies = plan.policies.map((policy) => {
      return new PolicyBounds(policy, plan.maxCost, this.fleet);
    });
    const quota = quotaOf(plan, 1);
    this.quota = quota && new QuotaBounds(quota, quotaCost(plan), plan.processes, this.fleet);
  }

  async run(): Promise<HistoryResult> {
    const { plan, events } = this.history;
    try {
      for (let slot = 0; slot < plan.processes; slot++) this.start(slot);
      for (const event of events) {
        await this.time.runUntil(event.atMs / 1000);
        if (this.broken !== undefined) break;
        this.happen(event);
      }
      if (this.broken === undefined) await new Liveness(this, this.faults.lastEndMs).check();
      if (this.broken === undefined) this.checkUnused();
    } catch (error) {
      // An error that nobody catches ends the process.
      this.fail('error', error instanceof Error ? String(error.stack) : String(error));
    }
    for (const slot of this.slots) slot?.kill();
    const { broken, decisions, admittedTokens: admitted } = this;
    return { broken, decisions, admitted };
  }

  fail(check: string, detail: string): void {
    this.broken ??= { check, atMs: this.time.seconds() * 1000, detail };
  }

  appOf(limit: number): string | undefined {
    const { policies, quota } = this.history.plan;
    return quota?.apps[limit - policies.length]?.name;
  }

  /** Forgets what a key has used; `done` is told if that was possible. */
  reset(slot: number, limit: number, key: string, done: () => void): void {
    this.policies[limit]!.lose();
    void this.slots[slot]?.reset(limit, key).then((wasReset) => wasReset && done());
  }

  private happen(event: HistoryEvent): void {
    switch (event.kind) {
      case 'ask':
        return this.slots[event.process]?.ask([event.limit], event.key, event.cost, event.count);
      case 'list':
        return this.slots[event.process]?.ask(event.limits, event.key, event.cost, event.count);
      case 'acquire':
        return this.slots[event.process]?.acquire(event.limit, event.key, event.timeoutMs);
      case 'refund':
        return this.slots[event.process]?.refund(event.limit, event.key);
      case 'reset':
        return this.reset(event.process, event.limit, event.key, () => {});
      case 'change':
        return this.change(event.limit, event.factor);
      default:
        return this.faults.strike(event);
    }
  }

  /** Until all processes have heard of new limits, the larger of both hold. */
  private change(asked: number, factor: number): void {
    const { limits, policies, quota, time } = this;
    const { plan } = this.history;
    const limit = Math.min(asked, plan.policies.length);
    if (plan.policies[limit]?.kind === 'rare') return;
    const most = Math.max(factor, limits.factorOf(limit));
    limits.set(limit, factor);
    limits.bind(limit, most, policies, quota, time.seconds());
    for (const slot of this.slots) slot?.change(limits.change, this.random() * CHANGE_SPREAD_MS);
    const { revision } = limits;
    time.after(CHANGE_SETTLES_MS, () => {
      if (limits.revision !== revision) return;
      limits.bind(limit, limits.factorOf(limit), policies, quota, time.seconds());
    });
  }

  // The parts that faults are done to.

  start(slot: number): void {
    this.passBounds();
    const name = `n${slot}.${++this.started}`;
    if (this.started > this.history.plan.processes) {
      for (const bounds of this.policies) bounds.joined();
    }
    this.quota?.processStarted();
    const { plan } = this.history;
    const { time, links, random, limits, decisionTimeoutMs } = this;
    const view = this.fleet.join(name, plan.processes);
    this.slots[slot] = new SimulatedProcess(
      name,
      { decisionTimeoutMs, limits: limits.change },
      { time, links, random },
      view,
      this,
    );
  }

  lost(lagSeconds: number): void {
    for (const bounds of this.policies) bounds.lose();
    this.quota?.lose(lagSeconds);
  }

  stalled({ view }: SimulatedProcess, forSeconds: number): void {
    const now = this.time.seconds();
    this.quota?.stalled(view.name, now, now + forSeconds);
  }

  late(seconds: number): void {
    for (const bounds of this.policies) bounds.late(seconds);
  }

  // The reports of processes.

  decided(): void {
    this.decisions++;
  }

  admitted(
    process: SimulatedProcess,
    limit: number,
    key: string,
    tokens: number,
    source: string,
    begun: number,
  ): void {
    this.admittedTokens += tokens;
    this.onAdmitted?.(limit, tokens);
    const { name } = process.view;
    const now = this.time.seconds();
    const app = this.appOf(limit);
    const broken =
      this.policies[limit]?.admitted(name, key, tokens, source, begun, now) ??
      (app && this.quota!.admitted(name, app, tokens, source, begun, now));
    if (broken !== undefined) this.fail('bound', broken);
  }

  refundBegun(process: SimulatedProcess, limit: number, key: string, tokens: number): void {
    const app = this.appOf(limit);
    this.policies[limit]?.refundBegun(process.view.name, key, tokens);
    if (app !== undefined) this.quota!.refund(process.view.name, app, tokens);
  }

  refundDone(limit: number, key: string, tokens: number, begun: number, isTold: boolean): void {
    this.policies[limit]?.refundDone(key, tokens, begun, isTold, this.time.seconds());
  }

  denied(
    { view }: SimulatedProcess,
    limit: number,
    cost: number,
    source: string,
    waiting: number,
  ): void {
    const app = this.appOf(limit);
    if (app === undefined || source !== 'fallback') return;
    const broken = this.quota!.denied(view.name, app, cost + waiting, this.time.seconds());
    if (broken !== undefined) this.fail('share', broken);
  }

  answered({ view }: SimulatedProcess, limit: number, key: string, begun: number): void {
    this.policies[limit]?.answered(view.name, key, begun, this.time.seconds());
  }

  gaveUp({ view }: SimulatedProcess, limit: number): void {
    const app = this.appOf(limit);
    if (app !== undefined) this.quota!.usedOtherwise(view.name, app, this.time.seconds());
  }

  gone(): void {
    this.passBounds();
  }

  /** A process that has had every answer has used what it was granted, or given it back. */
  private checkUnused(): void {
    for (const slot of this.slots) {
      if (slot === undefined || slot.hasMissed) continue;
      for (const bounds of this.policies) {
        const unused = bounds.unused(slot.view.name);
        if (unused !== undefined) this.fail('unused', unused);
      }
    }
  }

  /** Up to now the processes were those that there are. */
  private passBounds(): void {
    for (const bounds of this.policies) bounds.pass();
  }

  /** A bucket's name in Redis ends with policy, tier, algorithm and key. */
  private bucketMoved(process: string, name: string, tokens: number, isRefund: boolean): void {
    const [key, , , policy] = name.split(':').reverse();
    const index = this.history.plan.policies.findIndex((one) => one.name === policy);
    if (isRefund) this.policies[index]?.refundHeard(process, key!, -tokens, this.time.seconds());
    else this.policies[index]?.granted(process, key!, tokens);
  }
}
