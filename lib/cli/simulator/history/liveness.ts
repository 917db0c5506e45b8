import { type VirtualTime } from '../engine/virtual-time.js';
import { type VirtualLinks } from '../redis/virtual-links.js';
import { type Broken } from './fleet-view.js';
import { type History } from './history.js';
import { type LimitsInForce } from './limits-in-force.js';
import { type SimulatedProcess } from './simulated-process.js';

/** A history after its last event. */
export interface QuietRun {
  readonly history: History;
  readonly time: VirtualTime;
  readonly links: VirtualLinks;
  readonly slots: readonly (SimulatedProcess | undefined)[];
  readonly limits: LimitsInForce;
  readonly broken: Broken | undefined;
  onAdmitted: ((limit: number, tokens: number) => void) | undefined;
  appOf(limit: number): string | undefined;
  reset(slot: number, limit: number, key: string, done: () => void): void;
  fail(check: string, detail: string): void;
}

/** After the last fault the fleet is back within this. */
const BACK_MS = 3000;
const WAITER_MS = 1000;
const RESET_MS = 1500;
/** Time for which the rate is then watched, and the factor by which more is asked for. */
const WATCH_MS = 1000;
const STEP_MS = 10;
const ASKED_FOR = 1.6;
/** Leases, rounding and the order of arrivals keep a little of the rate. */
const LEAST_PART = 0.7;
const RARE_KEY = 'k0';
/** A limit that recovers in hours keeps its tokens for the judgement. */
const OTHER_KEY = 'k9';

/** Back at its rate: nothing of what happened may have an effect that stays. */
export class Liveness {
  private readonly admitted = new Map<number, number>();

  constructor(
    private readonly run: QuietRun,
    private readonly lastFaultMs: number,
  ) {}

  async check(): Promise<void> {
    const { run } = this;
    const { plan } = run.history;
    const limits = plan.policies.length + (plan.quota?.apps.length ?? 0);
    const from = Math.max(this.lastFaultMs, run.time.seconds() * 1000);
    // A fault that has not met a reply by now happens no more.
    for (const connection of run.links.of()) connection.nextReply = undefined;
    await this.wait(from, limits);
    for (const slot of run.slots) if (slot !== undefined) slot.fallbacks = 0;
    await this.watch(from + BACK_MS, limits);
    if (run.broken !== undefined) return;
    this.judge(limits);
  }

  /** Some load, so that what is only noticed with it is noticed. */
  private async wait(from: number, limits: number): Promise<void> {
    const { run } = this;
    const { policies } = run.history.plan;
    const unreset = new Set(policies.keys());
    for (let ms = 0; ms < BACK_MS; ms += 50) {
      await run.time.runUntil((from + ms) / 1000);
      if (run.broken !== undefined) return;
      for (const slot of run.slots) {
        for (let limit = 0; limit < limits; limit++) {
          slot?.ask(
            [limit],
            policies[limit]?.kind === 'rare' ? OTHER_KEY : 'k0',
            this.unitOf(limit),
            1,
          );
        }
      }
      if (ms === WAITER_MS) this.waitInLine();
      if (ms < RESET_MS) continue;
      for (const limit of unreset) {
        if (policies[limit]!.kind !== 'rare') unreset.delete(limit);
        else run.reset(0, limit, RARE_KEY, () => unreset.delete(limit));
      }
    }
  }

  /** One process waits for what another one resets; nobody tells it. */
  private waitInLine(): void {
    const { slots, history } = this.run;
    for (const [limit, { kind }] of history.plan.policies.entries()) {
      if (kind === 'rare') slots.at(-1)?.acquire(limit, RARE_KEY);
    }
  }

  private async watch(from: number, limits: number): Promise<void> {
    const { run } = this;
    const { plan } = run.history;
    run.onAdmitted = (limit, tokens) => {
      this.admitted.set(limit, (this.admitted.get(limit) ?? 0) + tokens);
    };
    const owed = new Array<number>(limits).fill(0);
    let turn = 0;
    for (let ms = 0; ms < WATCH_MS; ms += STEP_MS) {
      await run.time.runUntil((from + ms) / 1000);
      if (run.broken !== undefined) return;
      for (let limit = 0; limit < limits; limit++) {
        if (plan.policies[limit]?.kind === 'rare') {
          // The first call of a process reports what it owes the store, which would then deny the second.
          const asking = ms === 0 ? run.slots : run.slots.slice(0, ms === WATCH_MS / 2 ? 1 : 0);
          for (const slot of asking) slot?.ask([limit], RARE_KEY, 1, 1);
          continue;
        }
        const unit = this.unitOf(limit);
        owed[limit]! += (this.rateOf(limit) * ASKED_FOR * STEP_MS) / 1000;
        for (; owed[limit]! >= unit; owed[limit]! -= unit) {
          run.slots[turn++ % run.slots.length]?.ask([limit], 'k0', unit, 1);
        }
      }
    }
    await run.time.runUntil((from + WATCH_MS + 500) / 1000);
  }

  private unitOf(limit: number): number {
    const { policies, quota } = this.run.history.plan;
    return limit < policies.length ? 1 : quota!.unit;
  }

  private rateOf(limit: number): number {
    return this.run.limits.rateOf(limit, this.run.appOf(limit));
  }

  private judge(limits: number): void {
    const { run } = this;
    const { plan } = run.history;
    for (let limit = 0; limit < limits; limit++) {
      const got = this.admitted.get(limit) ?? 0;
      const isRare = plan.policies[limit]?.kind === 'rare';
      const least = isRare
        ? run.slots.length + 1
        : this.rateOf(limit) * LEAST_PART - 2 * this.unitOf(limit);
      if (got < least) {
        const name = plan.policies[limit]?.kind ?? run.appOf(limit);
        run.fail('liveness', `${name}: ${got} of at least ${least.toFixed(1)} in the last second`);
      }
    }
    for (const slot of run.slots) {
      if (slot === undefined) run.fail('liveness', 'a process is missing');
      else if (slot.fallbacks > 0) {
        run.fail('liveness', `${slot.view.name} decides ${slot.fallbacks} times without the store`);
      } else if (slot.pending > 0) {
        run.fail('liveness', `${slot.view.name} has ${slot.pending} calls that never came back`);
      }
    }
  }
}
