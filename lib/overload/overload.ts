import { type LogLinear } from '../common/histogram.js';
import { type Cancel, type Clock } from '../common/clock.js';
import { EventHub } from '../common/event-hub.js';
import { Admission, type Admitted, type LineEntry } from '../requests/admission.js';
import { type WaitPolicy } from '../requests/transport.js';
import { type TierRequest, type TierResolver } from '../requests/tier.js';
import {
  type LoadSample,
  type OverloadEvents,
  type OverloadStats,
  type Refused,
} from './events.js';
import { Line, type LineSettings, type Refusal, type TierCounts, type LineWaiter } from './line.js';
import { LoopTurns } from './loop-turns.js';
import { type OverloadLog } from './overload.log.js';
import { refusalWaits } from './refusal-waits.js';
import { checkOverload, type OverloadInput, type OverloadSettings } from './settings.js';
import { PASSES, Tiers } from './tiers.js';

/** The load of this process, where somebody measures it. */
export interface LoadSource {
  readonly factor: number;
  readonly load: LoadSample | undefined;
  readonly stale: number;
  change(settings: OverloadSettings): void;
  close(): void;
}

export interface OverloadDeps {
  /** As given in code. */
  readonly options: OverloadInput | undefined;
  readonly clock: Clock;
  readonly tier: TierResolver | undefined;
  readonly log: OverloadLog;
  /** False where the whole module is switched off. */
  readonly isEnabled?: boolean;
}

/** Standing, refusals and long turns are told about once in so long. */
const LOOK_MS = 1000;

/** The protection of this process from more requests than it can serve. */
export class Overload extends Admission {
  /** @internal */
  readonly line: Line;
  /** @internal */
  readonly tiers: Tiers;
  /** Counted by the transports. @internal */
  exempt = 0;
  /** @internal */
  upgrades = 0;
  /** @internal */
  settings: OverloadSettings;
  private readonly hub = new EventHub<OverloadEvents>(['standing', 'load', 'refused']);
  private readonly turns: LoopTurns;
  private readonly changed: ((settings: OverloadSettings) => void)[] = [];
  /** Requests that were in line at a guard. */
  private readonly entered = new WeakSet<object>();
  private waits: readonly number[];
  private refusals = 0;
  private source: LoadSource | undefined;
  private look: Cancel | undefined;
  private isClosed = false;
  private standing = false;
  private standingSince: number;
  /** Counts of the last look. */
  private seen: readonly TierCounts[] = [];
  /** Counts at which the loop began to stand. */
  private before: readonly TierCounts[] = [];

  /** @internal */
  constructor(private readonly deps: OverloadDeps) {
    super();
    const { options, clock, tier, log } = deps;
    this.settings = checkOverload(options ?? {});
    this.waits = refusalWaits(this.settings.retryAfterMs);
    this.tiers = new Tiers(this.settings, tier, options?.isExempt, log.tierFault);
    const soon = (task: () => void): void => void clock.soon(task);
    this.turns = new LoopTurns(() => clock.now(), soon);
    this.line = new Line(this.lineSettings(this.settings), this.turns, clock, soon);
    this.standingSince = clock.now();
    if (this.isOn) this.begin();
  }

  /** Whether requests go through the line. */
  get isOn(): boolean {
    return this.settings.enabled && !this.isClosed && this.deps.isEnabled !== false;
  }

  stats(): OverloadStats {
    const { line, tiers, turns, source, exempt, upgrades } = this;
    const { byTier, waits, waitedMicros } = line.stats;
    const names = tiers.names(this.settings);
    return {
      standing: this.isOn && this.isStanding(),
      waiting: line.size,
      perMs: line.meanRunMicros / 1000,
      inFlight: line.inFlight,
      turnMs: turns.lastMicros / 1000,
      factor: source?.factor ?? 1,
      load: source?.load,
      byTier: Object.fromEntries(names.map((name, place) => [name, { ...byTier[place]! }])),
      waits: [...waits],
      waitedMs: waitedMicros / 1000,
      ...{ exempt, upgrades },
      tierFaults: tiers.faults,
      stale: source?.stale ?? 0,
    };
  }

  /** How long requests have waited that ran in the end. @internal */
  get waitTimes(): LogLinear {
    return this.line.waitTimes;
  }

  /** The result stops listening. */
  on<N extends keyof OverloadEvents>(
    name: N,
    listener: (event: OverloadEvents[N]) => void,
  ): () => void {
    return this.hub.on(name, listener);
  }

  /** Requests to that path, and all below it, pass without the line. @internal */
  exemptOwn(path: string): void {
    this.tiers.addOwn(path);
  }

  /** The tier of a request, 0 the highest; -1 if it passes without the line. @internal */
  tierOf(request: TierRequest): number {
    return this.tiers.tierOf(request);
  }

  /** Runs work, lets it wait, or refuses it. Without the line it is run. @internal */
  enter(waiting: LineWaiter): void {
    if (this.isOn && waiting.tier !== PASSES) return this.line.enter(waiting);
    waiting.run();
  }

  /** @internal */
  admit(entry: LineEntry): true | Promise<Admitted> {
    const { subject, waitPolicy } = entry;
    if (this.entered.has(subject)) return true;
    this.entered.add(subject);
    const tier = this.tiers.tierOf(entry.rawRequest());
    if (tier === PASSES) {
      this.exempt++;
      return true;
    }
    if (this.line.tryBegin(tier)) return true;
    const wait = (): Promise<Admitted> =>
      new Promise((resolve) => this.line.enter(new WaitingEntry(tier, entry, resolve)));
    return waitPolicy === undefined ? wait() : this.waitPatiently(wait, waitPolicy);
  }

  /** @internal */
  retryAfterMs(): number {
    this.refusals = (this.refusals + 1) % this.waits.length;
    return this.waits[this.refusals]!;
  }

  /** Its sender keeps what comes after it, so it stands in line again and again, and runs in the end. */
  private async waitPatiently(
    wait: () => Promise<Admitted>,
    waitPolicy: WaitPolicy,
  ): Promise<Admitted> {
    const { clock } = this.deps;
    const until = clock.now() + waitPolicy.maxWaitMs * 1000;
    waitPolicy.begin();
    try {
      for (;;) {
        const fate = await wait();
        if (fate !== 'refused') return fate;
        if (clock.now() >= until) return 'run';
        waitPolicy.keepAlive();
        await new Promise<void>((resolve) => {
          clock.after(this.settings.line.intervalMicros / 1000, resolve);
        });
      }
    } finally {
      waitPolicy.end();
    }
  }

  /** Checks a section of the document; the result brings it into force, and cannot fail. @internal */
  prepare(section: OverloadInput = {}): () => void {
    const settings = checkOverload(section);
    return () => this.change(settings);
  }

  /** Called with settings that have come into force, the present ones first. @internal */
  whenChanged(listener: (settings: OverloadSettings) => void): void {
    this.changed.push(listener);
    listener(this.settings);
  }

  /** From now on the load is measured. @internal */
  follow(source: LoadSource): void {
    this.source = source;
    source.change(this.settings);
  }

  /** @internal */
  hasListeners(name: keyof OverloadEvents): boolean {
    return this.hub.has(name);
  }

  /** @internal */
  emit<N extends keyof OverloadEvents>(name: N, event: OverloadEvents[N]): void {
    this.hub.emit(name, event);
  }

  /** At shutdown: whatever waits is run, and whatever comes passes. @internal */
  close(): void {
    this.isClosed = true;
    this.end();
    this.line.drain();
    this.source?.close();
    this.deps.log.close();
  }

  private change(settings: OverloadSettings): void {
    const wasOn = this.isOn;
    this.settings = settings;
    this.waits = refusalWaits(settings.retryAfterMs);
    this.tiers.change(settings);
    this.line.change(this.lineSettings(settings));
    if (this.isOn && !wasOn) this.begin();
    if (wasOn && !this.isOn) {
      this.end();
      this.line.drain();
    }
    this.source?.change(settings);
    for (const listener of this.changed) listener(settings);
  }

  private lineSettings(settings: OverloadSettings): LineSettings {
    return { ...settings.line, tierCount: this.tiers.names(settings).length };
  }

  private begin(): void {
    this.seen = this.before = copied(this.line.stats.byTier);
    this.look ??= this.deps.clock.every(LOOK_MS, () => this.tell());
  }

  private end(): void {
    this.look?.();
    this.look = undefined;
  }

  private isStanding(): boolean {
    const now = this.deps.clock.now();
    this.turns.age(now);
    return this.line.isStanding(now);
  }

  private tell(): void {
    const { log } = this.deps;
    this.tellStanding();
    log.turn(this.turns.takeLongest() / 1000);
    const { byTier } = this.line.stats;
    const names = this.tiers.names(this.settings);
    for (const why of ['full', 'late'] as const) {
      names.forEach((tier, place) => this.tellRefused(tier, why, place, byTier));
    }
    this.seen = copied(byTier);
  }

  private tellRefused(
    tier: Refused['tier'],
    why: Refusal,
    place: number,
    byTier: readonly TierCounts[],
  ): void {
    const count = byTier[place]![why] - (this.seen[place]?.[why] ?? 0);
    if (count > 0) this.hub.emit('refused', { tier, why, count });
  }

  private tellStanding(): void {
    const standing = this.isStanding();
    if (standing === this.standing) return;
    const now = this.deps.clock.now();
    const sinceMs = (now - this.standingSince) / 1000;
    this.standing = standing;
    this.standingSince = now;
    const waiting = this.line.size;
    this.hub.emit('standing', { standing, sinceMs, waiting });
    const { byTier } = this.line.stats;
    if (standing) {
      this.before = this.seen;
      this.deps.log.standing(this.settings.line.intervalMicros / 1000, waiting);
    } else {
      const [now, then] = [totals(byTier), totals(this.before)];
      this.deps.log.rested(now.waited - then.waited, now.refused - then.refused);
    }
  }
}

/** A request at a guard that waits for its turn. */
class WaitingEntry implements LineWaiter {
  constructor(
    readonly tier: number,
    private readonly entry: Pick<LineEntry, 'isGone'>,
    private readonly end: (fate: Admitted) => void,
  ) {}

  run(): void {
    this.end('run');
  }

  refuse(): void {
    this.end('refused');
  }

  isGone(): boolean {
    const hasLeft = this.entry.isGone();
    if (hasLeft) this.end('gone');
    return hasLeft;
  }
}

const copied = (all: readonly TierCounts[]): TierCounts[] => all.map((one) => ({ ...one }));

function totals(all: readonly TierCounts[]): { waited: number; refused: number } {
  const sums = { waited: 0, refused: 0 };
  for (const { waited, full, late } of all) {
    sums.waited += waited;
    sums.refused += full + late;
  }
  return sums;
}
