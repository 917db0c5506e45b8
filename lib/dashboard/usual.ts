import { type Alert } from '../observability/alerts/alert.js';
import { type SeriesHistory } from '../observability/series-history.js';

/** The middle of the calm minutes before. */
export interface Usual {
  /** Denied per second. */
  readonly denied: number;
  /** Denied, as a part of the requests. */
  readonly part: number;
}

/** A time in which more was denied than usual, in wall-clock milliseconds. */
export interface Incident {
  readonly fromMs: number;
  readonly toMs: number;
}

const MINUTES = 60;
/** The minute that goes on: what happens now is in it. */
const LATEST = 1;
const FEWEST = 5;
/** An alert fires after its cause began. */
const EARLIER_MS = 60_000;
const KEPT_MS = (MINUTES + LATEST) * 60_000;

/**
 * The usual figures, by the median of the minutes of an hour, without those of incidents: alerts are about just the
 * figures that must not be taken for usual. Null if too few minutes are known.
 */
export function usualOf(
  { rate, denied, startMs, stepMs }: Pick<SeriesHistory, 'rate' | 'denied' | 'startMs' | 'stepMs'>,
  incidents: readonly Incident[] = [],
): Usual | null {
  const known = rate
    .map((asked, index) => {
      const fromMs = startMs + index * stepMs;
      return { asked: asked ?? 0, denied: denied[index] ?? 0, fromMs, toMs: fromMs + stepMs };
    })
    .slice(-MINUTES - LATEST, -LATEST)
    .filter(({ asked }) => asked > 0)
    .filter(({ fromMs, toMs }) => {
      return !incidents.some((one) => one.fromMs < toMs && one.toMs > fromMs);
    });
  if (known.length < FEWEST) return null;
  return {
    denied: median(known.map((one) => one.denied)),
    part: median(known.map((one) => one.denied / one.asked)),
  };
}

/** The incidents of the last hour, by the alerts that were seen: one that is over is soon forgotten by others. */
export class Incidents {
  private readonly known = new Map<string, Incident>();

  /** Those that there are with these alerts. */
  with(alerts: readonly Alert[], nowMs: number): Incident[] {
    for (const { rule, series, sinceMs, endedMs } of alerts) {
      if (series !== 'total' || (rule !== 'denialRise' && rule !== 'overload')) continue;
      const fromMs = sinceMs - EARLIER_MS;
      this.known.set(`${rule} ${fromMs}`, { fromMs, toMs: endedMs ?? nowMs });
    }
    for (const [id, { toMs }] of this.known) if (nowMs - toMs > KEPT_MS) this.known.delete(id);
    return [...this.known.values()];
  }
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
