import { availableParallelism, totalmem } from 'node:os';
import { performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { type Cancel, type Clock } from '../common/clock.js';
import { isStrayPromise } from '../common/promises.js';
import { readCgroup, type CgroupLimits } from './cgroup.js';
import { type LoadSample } from './events.js';
import { type LoadSource } from './overload.js';
import { scoreOf, SmoothedFactor } from './score.js';
import { type LoadProbe, type OverloadSettings } from './settings.js';

/** The figures of the runtime and the machine, as they give them. */
export interface SystemFigures {
  /** Processor time of this process so far. */
  cpuMicros(): number;
  /** Time in which the event loop was busy, and in which it waited, so far. */
  loopMs(): { readonly active: number; readonly idle: number };
  /** Turns of the event loop so far; undefined where the runtime does not count them. */
  turns(): number | undefined;
  heap(): { readonly used: number; readonly limit: number };
  rss(): number;
  /** Of the machine. */
  readonly cpus: number;
  readonly memoryBytes: number;
  /** By the runtime's own reading; 0 or a figure without a meaning if there is none. */
  constrainedBytes(): number;
  cgroup(): Promise<CgroupLimits>;
}

export interface LoadSignalsDeps {
  readonly clock: Pick<Clock, 'now' | 'every'>;
  /** Requests under way. */
  readonly inFlight: () => number;
  /** The application's own; one with the name of a signal takes its place. */
  readonly probes?: readonly LoadProbe[];
  /** Whether anybody needs a measurement. */
  readonly isNeeded: () => boolean;
  readonly told: (sample: LoadSample) => void;
  /** Called with each new factor. */
  readonly factor: (factor: number) => void;
  readonly system?: SystemFigures;
}

const SIGNALS = ['cpu', 'loop', 'turnMs', 'memory', 'inFlight'] as const;
type Signal = (typeof SIGNALS)[number];

/** Limits of a container change seldom, and reading them is a few files. */
const CGROUP_MICROS = 60_000_000;
/** After a longer gap (a suspended machine, a debugger) differences mean nothing. */
const LONGEST_GAP_TICKS = 5;

/** Readings that are compared with the ones before. */
interface LoadReading {
  readonly atMicros: number;
  readonly cpuMicros: number;
  readonly activeMs: number;
  readonly idleMs: number;
  readonly turns: number;
}

/**
 * Measures the load of this process at every tick, while anybody needs it. A figure that is missing or makes no
 * sense leaves the last good one: no limit is lowered because of it.
 */
export class LoadSignals implements LoadSource {
  load: LoadSample | undefined = undefined;
  /** Signals that were missing so far. */
  stale = 0;
  private readonly system: SystemFigures;
  private readonly smoothed = new SmoothedFactor();
  private readonly last: Record<Signal, number> = {
    ...{ cpu: 0, loop: 0, turnMs: 0, memory: 0, inFlight: 0 },
  };
  private readonly lastOfProbes: Record<string, number> = {};
  private settings: OverloadSettings | undefined;
  private before: LoadReading | undefined;
  private bounds: CgroupLimits = { cpus: undefined, memoryBytes: undefined };
  private boundsAt = -Infinity;
  private stop: Cancel | undefined;

  constructor(private readonly deps: LoadSignalsDeps) {
    this.system = deps.system ?? new NodeFigures();
  }

  get factor(): number {
    return this.smoothed.factor;
  }

  change(settings: OverloadSettings): void {
    const isOther = this.settings?.tickMs !== settings.tickMs;
    this.settings = settings;
    if (!settings.enabled) return this.close();
    if (!isOther && this.stop !== undefined) return;
    this.stop?.();
    this.before = undefined;
    this.readBounds(this.deps.clock.now());
    this.stop = this.deps.clock.every(settings.tickMs, () => this.tick(settings.tickMs));
  }

  /** Limits have all that they say again. */
  close(): void {
    this.stop?.();
    this.stop = undefined;
    this.rest();
  }

  private tick(tickMs: number): void {
    if (!this.deps.isNeeded()) return this.rest();
    const now = this.deps.clock.now();
    if (now - this.boundsAt >= CGROUP_MICROS) this.readBounds(now);
    const { before } = this;
    const reading = this.read(now);
    this.before = reading;
    const gap = before === undefined ? Infinity : now - before.atMicros;
    const isNext = gap > 0 && gap <= LONGEST_GAP_TICKS * tickMs * 1000;
    if (isNext) this.take(this.differences(before!, reading));
    this.take({ memory: attempt(() => this.memory()), inFlight: attempt(this.deps.inFlight) });
    this.askProbes();
    this.tell();
  }

  private rest(): void {
    this.before = undefined;
    if (this.load === undefined) return;
    this.load = undefined;
    if (this.factor !== 1) this.deps.factor(1);
    this.smoothed.reset();
  }

  private tell(): void {
    const { last, lastOfProbes, settings, smoothed } = this;
    const score = scoreOf(last, settings!.score);
    const before = smoothed.factor;
    const factor = smoothed.next(score, settings!.score.floor);
    if (factor !== before) this.deps.factor(factor);
    this.load = { ...last, probes: { ...lastOfProbes }, score, factor };
    this.deps.told(this.load);
  }

  /** Readings that cannot be had are NaN, and so is what is made of them. */
  private read(atMicros: number): LoadReading {
    const { system } = this;
    const loop = attempt(() => system.loopMs());
    return {
      atMicros,
      cpuMicros: attempt(() => system.cpuMicros()) ?? NaN,
      activeMs: loop?.active ?? NaN,
      idleMs: loop?.idle ?? NaN,
      turns: attempt(() => system.turns()) ?? NaN,
    };
  }

  private differences(before: LoadReading, now: LoadReading): Partial<Record<Signal, number>> {
    const micros = now.atMicros - before.atMicros;
    const active = now.activeMs - before.activeMs;
    const idle = now.idleMs - before.idleMs;
    const turns = now.turns - before.turns;
    const cpus = this.bounds.cpus ?? this.system.cpus;
    return {
      cpu: (now.cpuMicros - before.cpuMicros) / micros / cpus,
      loop: active / (active + idle),
      turnMs: Number.isNaN(turns) ? 0 : active / Math.max(1, turns),
    };
  }

  /** The used part of the heap, or of the container's memory: whichever is nearer to its end. */
  private memory(): number {
    const { system, bounds } = this;
    const heap = system.heap();
    const constrained = attempt(() => system.constrainedBytes()) ?? 0;
    const isMeant = constrained > 0 && constrained <= system.memoryBytes;
    const bytes = bounds.memoryBytes ?? (isMeant ? constrained : system.memoryBytes);
    return Math.max(heap.used / heap.limit, system.rss() / bytes);
  }

  private take(figures: Partial<Record<Signal, number | undefined>>): void {
    for (const signal of SIGNALS) {
      if (!Object.hasOwn(figures, signal)) continue;
      const figure = figures[signal];
      if (!isFigure(figure)) this.stale++;
      else this.last[signal] = PARTS.has(signal) ? Math.min(1, figure) : figure;
    }
  }

  private askProbes(): void {
    for (const probe of this.deps.probes ?? []) {
      const figure = attempt(() => probe.sample());
      const signal = SIGNALS.find((one) => one === probe.name);
      if (isStrayPromise(figure)) this.stale++;
      else if (signal !== undefined) this.take({ [signal]: figure });
      else if (isFigure(figure)) this.lastOfProbes[probe.name] = figure;
      else this.stale++;
    }
  }

  private readBounds(now: number): void {
    this.boundsAt = now;
    void this.system.cgroup().then(
      (bounds) => (this.bounds = bounds),
      // No container, or one that hides its limits: those of the machine hold.
      () => {},
    );
  }
}

const PARTS: ReadonlySet<string> = new Set<Signal>(['cpu', 'loop', 'memory']);

function isFigure(figure: unknown): figure is number {
  return typeof figure === 'number' && figure >= 0 && Number.isFinite(figure);
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Newer types than the oldest Node that there is support for. */
interface NodeTiming {
  readonly uvMetricsInfo?: { readonly loopCount: number };
}

class NodeFigures implements SystemFigures {
  readonly cpus = availableParallelism();
  readonly memoryBytes = totalmem();

  cpuMicros(): number {
    const { user, system } = process.cpuUsage();
    return user + system;
  }

  loopMs(): { active: number; idle: number } {
    return performance.eventLoopUtilization();
  }

  turns(): number | undefined {
    return (performance.nodeTiming as unknown as NodeTiming).uvMetricsInfo?.loopCount;
  }

  heap(): { used: number; limit: number } {
    const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
    return { used, limit };
  }

  rss(): number {
    return process.memoryUsage.rss();
  }

  constrainedBytes(): number {
    return process.constrainedMemory();
  }

  cgroup(): Promise<CgroupLimits> {
    return readCgroup();
  }
}
