import { createRateLimiter } from '../../../limiter/create-rate-limiter.js';
import { type Decision } from '../../../limiter/decision.js';
import { type LimitsChange } from '../../../limiter/limits-change.js';
import { type PolicyInput } from '../../../limiter/policy-options.js';
import {
  type Acquire,
  type AcquireRequest,
  type RateLimiter,
} from '../../../limiter/rate-limiter.js';
import { Machine } from '../engine/machine.js';
import { type VirtualTime } from '../engine/virtual-time.js';
import { virtualDriver } from '../redis/virtual-client.js';
import { type VirtualLinks } from '../redis/virtual-links.js';
import { type ProcessView } from './fleet-view.js';

/** Told of everything that can be seen of a process from outside. */
export interface Observer {
  decided(): void;
  admitted(
    process: SimulatedProcess,
    limit: number,
    key: string,
    tokens: number,
    source: string,
    begun: number,
  ): void;
  refundBegun(process: SimulatedProcess, limit: number, key: string, tokens: number): void;
  /** `begun`: when the tokens were asked for, and whether the limiter was told so. */
  refundDone(limit: number, key: string, tokens: number, begun: number, isTold: boolean): void;
  /** `waiting`: tokens that others wait for; some may have theirs, and not know it yet. */
  denied(
    process: SimulatedProcess,
    limit: number,
    cost: number,
    source: string,
    waiting: number,
  ): void;
  /** The store has decided. */
  answered(process: SimulatedProcess, limit: number, key: string, begun: number): void;
  /** Nobody waits any more for what was asked for; it may yet be taken, and then goes back. */
  gaveUp(process: SimulatedProcess, limit: number): void;
  /** It is about to be no more. */
  gone(process: SimulatedProcess): void;
  fail(check: string, detail: string): void;
  appOf(limit: number): string | undefined;
}

export interface ProcessConfig {
  readonly decisionTimeoutMs: number;
  /** Those that it starts with. */
  readonly limits: LimitsChange;
}

export interface ProcessWorld {
  readonly time: VirtualTime;
  readonly links: VirtualLinks;
  readonly random: () => number;
}

interface Taken {
  readonly limits: readonly number[];
  readonly key: string;
  readonly tokens: number;
  readonly begun: number;
  readonly decision: Decision;
}

/** A limiter that closes waits for its quota, and then as long again for its policies. */
const CLOSING_TIMEOUTS = 3;

/** One process of the fleet: the limiter as it ships, on a machine of its own. */
export class SimulatedProcess {
  readonly machine: Machine;
  /** Decisions of the last second of the run that did without the store. */
  fallbacks = 0;
  /** Calls that have not come back. */
  pending = 0;
  /** The store did not answer it once, or not in time. */
  hasMissed = false;
  /** Those in line, by limit. */
  private readonly waiting: number[] = [];
  private isLeaving = false;
  private readonly decisionTimeoutMs: number;
  private readonly limiter: RateLimiter;
  /** Takes that may still be given back. */
  private readonly taken: Taken[] = [];

  constructor(
    name: string,
    { decisionTimeoutMs, limits }: ProcessConfig,
    private readonly world: ProcessWorld,
    readonly view: ProcessView,
    private readonly observer: Observer,
  ) {
    this.machine = new Machine(name, world.time, world.random);
    this.decisionTimeoutMs = decisionTimeoutMs;
    const { revision, policies, ...options } = limits;
    this.limiter = createRateLimiter({
      ...options,
      policies: policies as Record<string, PolicyInput>,
      nodeId: name,
      clock: this.machine.clock,
      store: {
        type: 'redis',
        url: 'redis://virtual',
        driver: virtualDriver(this.machine, world.links),
        decisionTimeout: `${decisionTimeoutMs}ms`,
      },
    });
    if (revision > 0) this.limiter.prepare(limits)();
    this.limiter.on('store', () => (this.hasMissed = true));
  }

  /** One limit, or several policies at once. */
  ask(limits: readonly number[], key: string, cost: number, count: number): void {
    this.machine.run('arrival', () => {
      for (let i = 0; i < count; i++) this.askOnce(limits, key, cost);
    });
  }

  /** Without a timeout it waits for as long as it takes. */
  acquire(limit: number, key: string, timeoutMs?: number): void {
    this.machine.run('arrival', () => {
      const begun = this.world.time.seconds();
      this.pending++;
      this.waiting[limit] = (this.waiting[limit] ?? 0) + 1;
      const options = timeoutMs === undefined ? {} : { timeoutMs };
      this.limiter.acquire(this.request(limit, key, 1), options).then(
        (decision) => {
          this.pending--;
          this.waiting[limit]!--;
          this.decided([limit], key, 1, decision, begun);
        },
        () => {
          this.pending--;
          this.waiting[limit]!--;
          // Its last call may not have been answered in time either, and was granted in vain then.
          const waitedMs = (this.world.time.seconds() - begun) * 1000;
          if (waitedMs >= this.decisionTimeoutMs) this.hasMissed = true;
          this.observer.gaveUp(this, limit);
        },
      );
    });
  }

  /** Gives the latest of what was taken of that limit back; every other time it says what that was. */
  refund(limit: number, key: string): void {
    this.machine.run('arrival', () => {
      const index = this.taken.findLastIndex((one) => one.limits[0] === limit && one.key === key);
      if (index < 0) return;
      const [{ limits, tokens, begun, decision }] = this.taken.splice(index, 1) as [Taken];
      const since = this.world.time.seconds();
      for (const one of limits) this.observer.refundBegun(this, one, key, tokens);
      const told = this.taken.length % 2 === 0 ? decision : undefined;
      const done = this.limiter.refund(this.requests(limits, key, tokens), told);
      const settled = (): void => {
        // One that the store has not answered in time may reach it later, or never.
        const waitedMs = (this.world.time.seconds() - since) * 1000;
        if (waitedMs >= this.decisionTimeoutMs) {
          this.hasMissed = true;
          return;
        }
        for (const one of limits) {
          this.observer.refundDone(one, key, tokens, begun, told !== undefined);
        }
      };
      if (done instanceof Promise) done.then(settled, () => {});
      else settled();
    });
  }

  /** Resolves with whether it was possible. */
  async reset(limit: number, key: string): Promise<boolean> {
    try {
      await this.limiter.reset({ policy: `p${limit}`, key });
      return true;
    } catch {
      return false;
    }
  }

  change(change: LimitsChange, delayMs: number): void {
    this.world.time.after(delayMs, () => {
      this.machine.run('arrival', () => {
        if (this.isLeaving || change.revision <= this.limiter.revision) return;
        this.limiter.prepare(change)();
      });
    });
  }

  stall(ms: number): void {
    this.machine.stall(ms);
  }

  kill(): void {
    if (this.machine.isAlive) this.observer.gone(this);
    this.machine.isAlive = false;
    this.view.isAlive = false;
    for (const connection of this.world.links.of(this.view.name)) connection.close();
  }

  /** Stops in good order. */
  leave(): void {
    this.isLeaving = true;
    this.machine.run('arrival', () => {
      void this.limiter.close().then(() => this.kill());
      // A closing limiter waits for its last replies in real time, which does not pass here.
      const closingMs = CLOSING_TIMEOUTS * this.decisionTimeoutMs;
      this.machine.clock.after(closingMs, () => this.kill());
    });
  }

  private askOnce(limits: readonly number[], key: string, cost: number): void {
    const begun = this.world.time.seconds();
    try {
      const answer = this.limiter.tryAcquire(this.requests(limits, key, cost));
      if (!(answer instanceof Promise)) return this.decided(limits, key, cost, answer, begun);
      this.pending++;
      answer.then(
        (decision) => {
          this.pending--;
          this.decided(limits, key, cost, decision, begun);
        },
        (error: unknown) => this.observer.fail('error', String(error)),
      );
    } catch (error) {
      this.observer.fail('error', String(error));
    }
  }

  private decided(
    limits: readonly number[],
    key: string,
    cost: number,
    decision: Decision,
    begun: number,
  ): void {
    if (!this.machine.isAlive) return;
    const parts = decision.decisions ?? [decision];
    const isByShare = parts.some(({ source }) => source === 'fallback');
    this.observer.decided();
    for (const limit of limits) {
      if (partOf(parts, limit, limits)?.source !== 'store') continue;
      this.observer.answered(this, limit, key, begun);
    }
    if (isByShare) {
      this.fallbacks++;
      this.hasMissed = true;
    }
    if (!decision.allowed) {
      const [limit] = limits as [number];
      const waiting = this.waiting[limit] ?? 0;
      return this.observer.denied(this, limit, cost, decision.source, waiting);
    }
    for (const limit of limits) {
      const { source } = partOf(parts, limit, limits)!;
      this.observer.admitted(this, limit, key, cost, source, begun);
    }
    if (!isByShare) this.taken.push({ limits, key, tokens: cost, begun, decision });
  }

  private requests(limits: readonly number[], key: string, cost: number): Acquire {
    const [first] = limits as [number];
    if (limits.length === 1) return this.request(first, key, cost);
    return limits.map((limit) => this.request(limit, key, cost));
  }

  private request(limit: number, key: string, cost: number): AcquireRequest {
    const app = this.observer.appOf(limit);
    if (app !== undefined) return { app, cost };
    return { policy: `p${limit}`, key, cost };
  }
}

/** A list says of each of its policies how it was decided; a denied one only of those that denied. */
function partOf(
  parts: readonly Decision[],
  limit: number,
  limits: readonly number[],
): Decision | undefined {
  return limits.length === 1 ? parts[0] : parts.find(({ policy }) => policy === `p${limit}`);
}
