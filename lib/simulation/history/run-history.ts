import { Network } from '../engine/network.js';
import { seededRandom } from '../engine/seeded-random.js';
import { VirtualTime } from '../engine/virtual-time.js';
import { VirtualLinks } from '../redis/virtual-links.js';
import { VirtualRedis } from '../redis/virtual-redis.js';
import { FleetView, type Broken } from './fleet-view.js';
import { type FaultEvent } from './faults.js';
import { type History, type HistoryEvent } from './history.js';
import { Liveness } from './liveness.js';
import { policiesOf, quotaOf, scaled } from './plan.js';
import { PolicyBounds } from './policy-bounds.js';
import { QuotaBounds } from './quota-bounds.js';
import { SimulatedProcess, type Observer } from './simulated-process.js';

/** The longest chain of promises from a reply to a decision, with room to spare. */
const TURNS_TO_SETTLE = 24;
/** Within this all processes of the fleet have heard of a change, and no lease is older. */
const CHANGE_SETTLES_MS = 1500;

export interface HistoryResult {
  readonly broken: Broken | undefined;
  readonly decisions: number;
  readonly admitted: number;
  readonly calls: number;
}

/** Lives through a history, and stops at the first bound that does not hold. */
export function runHistory(history: History): Promise<HistoryResult> {
  return new HistoryRun(history).run();
}

export class HistoryRun implements Observer {
  readonly time = new VirtualTime(TURNS_TO_SETTLE);
  readonly fleet = new FleetView();
  readonly slots: (SimulatedProcess | undefined)[] = [];
  broken: Broken | undefined;
  onAdmitted: ((limit: number, tokens: number) => void) | undefined;
  private readonly random: () => number;
  private readonly links: VirtualLinks;
  private readonly server: VirtualRedis;
  private readonly policies: PolicyBounds[];
  private readonly quota: QuotaBounds | undefined;
  private readonly factors: number[];
  private revision = 0;
  private started = 0;
  private laggingSince: number | undefined;
  private lastFaultEndMs = 0;
  private decisions = 0;
  private admittedTokens = 0;
  private calls = 0;

  constructor(readonly history: History) {
    const { plan, seed } = history;
    this.random = seededRandom(seed + 1);
    const network = new Network(this.time, seededRandom(seed + 2), plan.decisionTimeoutMs);
    this.server = new VirtualRedis(this.time, {
      bucket: (process, key, tokens) => this.bucketMoved(process, key, tokens),
      quota: (process, app, tokens) => this.quota?.granted(process, app, tokens),
      nodes: (process, nodes) => {
        const view = this.fleet.named(process);
        if (view !== undefined) view.nodes = nodes;
      },
    });
    this.links = new VirtualLinks(this.time, network, this.server);
    this.factors = plan.policies.map(() => 1);
    this.policies = plan.policies.map((policy) => {
      return new PolicyBounds(policy, plan.maxCost, this.fleet);
    });
    const quota = quotaOf(plan, 1);
    this.quota = quota && new QuotaBounds(quota, plan.maxCost, this.fleet);
    if (this.quota !== undefined) this.quota.initial = plan.processes;
  }

  async run(): Promise<HistoryResult> {
    const { plan, events } = this.history;
    for (let slot = 0; slot < plan.processes; slot++) this.start(slot);
    try {
      for (const event of events) {
        await this.time.runUntil(event.atMs / 1000);
        if (this.broken !== undefined) break;
        this.happen(event);
      }
      if (this.broken === undefined) await new Liveness(this, this.lastFaultEndMs).check();
    } catch (error) {
      // What nobody catches ends the process.
      this.fail('error', error instanceof Error ? String(error.stack) : String(error));
    }
    for (const slot of this.slots) slot?.kill();
    const { broken, decisions, admittedTokens: admitted, calls } = this;
    return { broken, decisions, admitted, calls };
  }

  fail(check: string, detail: string): void {
    this.broken ??= { check, atMs: this.time.seconds() * 1000, detail };
  }

  // What processes tell.

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
    const policy = this.policies[limit];
    const app = this.appOf(limit);
    const broken =
      policy?.admitted(name, key, tokens, source, begun, now) ??
      (app && this.quota!.admitted(name, app, tokens, source, begun, now));
    if (broken !== undefined) this.fail('bound', broken);
  }

  refundBegun(process: SimulatedProcess, limit: number, key: string, tokens: number): void {
    const app = this.appOf(limit);
    this.policies[limit]?.refundBegun(process.view.name, key, tokens);
    if (app !== undefined) this.quota!.refund(process.view.name, app, tokens);
  }

  refundDone(limit: number, key: string, tokens: number): void {
    this.policies[limit]?.refundDone(key, tokens, this.time.seconds());
  }

  storeSwitched(process: SimulatedProcess, isOpen: boolean): void {
    const now = this.time.seconds();
    // All policies see the same switch; only the last of them may note it.
    for (const bounds of this.policies) {
      process.view.isOpen = !isOpen;
      bounds.switched(process.view, isOpen, now);
    }
    process.view.isOpen = isOpen;
  }

  quotaSwitched(process: SimulatedProcess, isOffline: boolean): void {
    if (process.view.isOffline === isOffline) return;
    this.quota?.switched(process.view, isOffline, this.time.seconds());
  }

  appOf(limit: number): string | undefined {
    const { policies, quota } = this.history.plan;
    return quota?.apps[limit - policies.length]?.name;
  }

  /** Tokens per second that the limit has now: those that an app is sure of. */
  rateOf(limit: number): number {
    const { plan } = this.history;
    const policy = plan.policies[limit];
    const factor = this.factors[Math.min(limit, plan.policies.length)] ?? 1;
    if (policy !== undefined) return (scaled(policy, factor).rate * 1000) / policy.periodMs;
    return quotaOf(plan, factor)!.apps[this.appOf(limit)!]!.guaranteed;
  }

  /** Forgets what a key has used; `done` is told if that was possible. */
  reset(slot: number, limit: number, key: string, done: () => void): void {
    this.policies[limit]!.lose();
    void this.slots[slot]?.reset(limit, key).then((wasReset) => wasReset && done());
  }

  /** A bucket's name in Redis ends with policy, tier, algorithm and key. */
  private bucketMoved(process: string, name: string, tokens: number): void {
    const [key, , , policy] = name.split(':').reverse();
    const index = this.history.plan.policies.findIndex((one) => one.name === policy);
    this.policies[index]?.granted(process, key!, tokens);
  }

  // What happens.

  private happen(event: HistoryEvent): void {
    switch (event.kind) {
      case 'ask':
        return this.slots[event.process]?.ask(
          event.limit,
          `k${event.key}`,
          event.cost,
          event.count,
        );
      case 'acquire':
        return this.slots[event.process]?.acquire(event.limit, `k${event.key}`, event.timeoutMs);
      case 'refund':
        return this.slots[event.process]?.refund(event.limit, `k${event.key}`);
      case 'reset':
        this.policies[event.limit]?.lose();
        return void this.slots[event.process]?.reset(event.limit, `k${event.key}`);
      case 'change':
        return this.change(event.limit, event.factor);
      default:
        return this.strike(event, event.atMs);
    }
  }

  /** The new limits come to one process after the other. */
  private change(limit: number, factor: number): void {
    const { plan } = this.history;
    const index = Math.min(limit, plan.policies.length);
    this.factors[index] = factor;
    this.revision++;
    const now = this.time.seconds();
    const policy = plan.policies[index];
    this.settleChange(index, now, true);
    const quota = quotaOf(plan, this.factors[plan.policies.length] ?? 1);
    const change = {
      revision: this.revision,
      policies: policiesOf(plan, this.factors),
      ...(quota && { quota }),
    };
    for (const slot of this.slots) slot?.change(change, this.random() * 100);
    if (policy?.kind === 'rare') return;
    this.time.after(CHANGE_SETTLES_MS, () => this.settleChange(index, this.time.seconds(), false));
  }

  private before: number[] = [];

  /** Until all have heard of it the larger of both limits holds. */
  private settleChange(index: number, second: number, isNew: boolean): void {
    const { plan } = this.history;
    const policy = plan.policies[index];
    const factor = this.factors[index] ?? 1;
    const most = isNew ? Math.max(factor, this.before[index] ?? 1) : factor;
    this.before[index] = factor;
    if (policy !== undefined) {
      const { rate, burst } = scaled(policy, most);
      const perSecond = (rate * 1000) / policy.periodMs;
      this.policies[index]!.change(perSecond, policy.kind === 'window' ? rate : burst, second);
    } else {
      this.quota?.change(quotaOf(plan, most)!, second);
    }
  }

  private start(slot: number): void {
    const { plan } = this.history;
    const name = `n${slot}.${++this.started}`;
    this.quota?.processStarted();
    const quota = quotaOf(plan, this.factors[plan.policies.length] ?? 1);
    this.slots[slot] = new SimulatedProcess(
      name,
      { plan, policies: policiesOf(plan, this.factors), quota },
      { time: this.time, links: this.links, random: this.random },
      this.fleet.join(name),
      this,
    );
    if (this.revision > 0) {
      const policies = policiesOf(plan, this.factors);
      this.slots[slot]!.change({ revision: this.revision, policies, ...(quota && { quota }) }, 0);
    }
  }

  private lose(lagSeconds = 0): void {
    for (const bounds of this.policies) bounds.lose();
    this.quota?.lose(lagSeconds);
  }

  private strike(event: FaultEvent, atMs: number): void {
    const { links, server, time } = this;
    const nameOf = (slot: number): string | undefined => {
      return slot < 0 ? undefined : (this.slots[slot]?.view.name ?? 'nobody');
    };
    let lastsMs = 0;
    switch (event.kind) {
      case 'late':
        links.delay(event.ms, event.forMs, nameOf(event.process));
        lastsMs = event.forMs + event.ms;
        break;
      case 'pause':
        server.pause();
        time.after(event.forMs, () => server.goOn());
        lastsMs = event.forMs;
        break;
      case 'down':
        this.goDown(event.forMs);
        lastsMs = event.forMs;
        break;
      case 'drop':
        links.drop(nameOf(event.process));
        break;
      case 'half-open':
        for (const connection of links.of(nameOf(event.process))) connection.isDeaf = true;
        break;
      case 'reply':
        for (const one of links.of(nameOf(event.process))) one.nextReply = event.fault;
        break;
      case 'flush':
        this.lose();
        server.flush();
        break;
      case 'lag':
        this.laggingSince ??= time.seconds();
        server.fallBehind();
        break;
      case 'restart':
        this.lose(
          event.keeps === 'replica' ? time.seconds() - (this.laggingSince ?? time.seconds()) : 0,
        );
        this.laggingSince = undefined;
        server.restart(event.keeps);
        this.goDown(event.downMs);
        lastsMs = event.downMs;
        break;
      case 'clock':
        this.lose();
        server.stepClock(event.ms);
        break;
      case 'stall':
        this.slots[event.process]?.stall(event.forMs);
        lastsMs = event.forMs;
        break;
      case 'crash':
      case 'leave': {
        const { process: slot, backAfterMs, kind } = event;
        if (kind === 'crash') this.slots[slot]?.kill();
        else this.slots[slot]?.leave();
        this.slots[slot] = undefined;
        time.after(backAfterMs, () => {
          if (this.slots[slot] === undefined) this.start(slot);
        });
        lastsMs = backAfterMs;
        break;
      }
    }
    this.lastFaultEndMs = Math.max(this.lastFaultEndMs, atMs + lastsMs);
  }

  private downUntil = 0;

  private goDown(forMs: number): void {
    const { links, time } = this;
    links.isDown = true;
    links.drop();
    this.downUntil = Math.max(this.downUntil, time.now() + forMs * 1000);
    time.at(this.downUntil, () => {
      if (time.now() >= this.downUntil) links.isDown = false;
    });
  }
}
