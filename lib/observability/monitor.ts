import { later, type Cancel, type Clock } from '../common/clock.js';
import { EventHub } from '../common/event-hub.js';
import { type MonitorOptions } from './monitor-options.js';
import { Reading, SeriesTable } from './series-table.js';
import { type Series, type SeriesKind } from './series.js';
import { type Source } from './sources.js';

const TICK_MS = 1000;
/** A timer that fires a moment early must not make a tick of its own out of the rest of the second. */
const LEAST_TICK_MS = 250;

/** The events of a monitor. */
export interface MonitorEvents {
  /** The figures of another second are there. */
  tick: Tick;
}

export interface Tick {
  /** On the monitor's own clock: the instant to ask the rings with. */
  readonly nowMicros: number;
}

/**
 * Watches what this process does: once a second it reads what the features have counted, and keeps the
 * differences at three horizons. Nothing is told to it by a decision. Abstract, so that it is its own injection token.
 */
export abstract class RateLimitMonitor {
  /** What is kept of `total`, of the `store`, or of an app, a policy or a resource by name. */
  abstract series(kind: SeriesKind, name?: string): Series | undefined;

  /** All that is kept. */
  abstract allSeries(): Series[];

  /** Listens; the result stops listening. */
  abstract on<N extends keyof MonitorEvents>(
    name: N,
    listener: (event: MonitorEvents[N]) => void,
  ): () => void;
}

export class Monitor extends RateLimitMonitor {
  private readonly events = new EventHub<MonitorEvents>(['tick']);
  private readonly reading = new Reading();
  private readonly table: SeriesTable;
  private readAtMicros: number;
  private stopTicks: Cancel | undefined;

  constructor(
    { maxSeries }: MonitorOptions,
    private readonly sources: readonly Source[],
    private readonly clock: Pick<Clock, 'now' | 'every'>,
  ) {
    super();
    this.table = new SeriesTable(maxSeries);
    this.readAtMicros = clock.now();
  }

  start(): void {
    if (this.stopTicks !== undefined) return;
    const sinceTick = (this.clock.now() / 1000) % TICK_MS;
    const rest = TICK_MS - sinceTick;
    // At the beginning of each second, so that every second is one slot, however long ticks take.
    this.stopTicks = later(this.clock, rest < LEAST_TICK_MS ? rest + TICK_MS : rest, () => {
      this.stopTicks = undefined;
      this.tick();
      this.start();
    });
  }

  stop(): void {
    this.stopTicks?.();
    this.stopTicks = undefined;
  }

  series(kind: SeriesKind, name?: string): Series | undefined {
    return this.table.find(kind, name);
  }

  allSeries(): Series[] {
    return this.table.all();
  }

  on<N extends keyof MonitorEvents>(
    name: N,
    listener: (event: MonitorEvents[N]) => void,
  ): () => void {
    return this.events.on(name, listener);
  }

  private tick(): void {
    const { reading, table } = this;
    const nowMicros = this.clock.now();
    const spanMs = (nowMicros - this.readAtMicros) / 1000;
    this.readAtMicros = nowMicros;
    reading.clear();
    for (const source of this.sources) source.read(reading);
    // The figures are of the second that has just ended; after a stall all of them are.
    const atMicros = nowMicros - (Math.min(spanMs, TICK_MS) * 1000) / 2;
    table.read(atMicros, spanMs, reading);
    this.events.emit('tick', { nowMicros });
  }
}
