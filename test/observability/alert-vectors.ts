import { readFileSync } from 'node:fs';
import { LogLinear } from '../../lib/common/histogram.js';
import { Conditions, statesOfProcess } from '../../lib/observability/alerts/conditions.js';
import { evaluate, QUIET, type AlertPhase } from '../../lib/observability/alerts/evaluate.js';
import { checkAlerts, isHeld, type Rule } from '../../lib/observability/alerts/rules.js';
import { noCounts, Series, type Counts } from '../../lib/observability/series.js';
import { type Facts } from '../../lib/observability/sources.js';
import { type BreakerKind } from '../../lib/protection/breaker-state.js';
import { ManualClock } from '../support/manual-clock.js';

/** A stretch of time in which so much happens each second. */
export interface Steady extends Partial<Counts> {
  readonly seconds: number;
  readonly rate?: number;
  /** The time of each answer. */
  readonly ms?: number;
  /** Of rules about states. */
  readonly holds?: boolean;
  /** Of `breakerOpen`: what holds is made of the state, as of that of a process. */
  readonly breaker?: BreakerKind;
}

export type Part =
  | Steady
  /** The process stands still: nothing happens, and nothing is read. */
  | { readonly stalled: number }
  /** A gap whose counts are read at its end only. */
  | { readonly late: number; readonly rate: number }
  /** Counts begin anew. */
  | { readonly restart: true };

export interface Vector {
  readonly rule: string;
  readonly name: string;
  /** Prometheus can say it as well: it fires or stays quiet there as here. */
  readonly promtool?: boolean;
  readonly capacity?: number;
  /** Seconds between two readings; by default one, and more where nobody looks more often. */
  readonly step?: number;
  readonly parts: readonly Part[];
  /** The second of each change. */
  readonly expect: readonly (readonly [number, AlertPhase])[];
}

export const VECTORS = JSON.parse(
  readFileSync(new URL('./alert-vectors.json', import.meta.url), 'utf8'),
) as readonly Vector[];

export const ruleOf = (id: string): Rule => checkAlerts().rules.find((rule) => rule.id === id)!;

type Course = Pick<Vector, 'parts' | 'capacity' | 'step'>;

const LOOKS = ['errorRate', 'p99Rise', 'denialRise'];
const HOUR_MS = 3_600_000;

/** The changes that a rule makes of a vector. */
export function run(
  rule: Rule,
  { parts, capacity, step = LOOKS.includes(rule.name) ? rule.everyMs / 1000 : 1 }: Course,
) {
  const clock = new ManualClock();
  // At the beginning of an hour, so that seconds of a vector are easy to follow.
  clock.advance(HOUR_MS - ((clock.now() / 1000) % HOUR_MS));
  const series = new Series('total', undefined, { hours: true });
  const beganMicros = clock.now();
  let counts = noCounts();
  let times = new LogLinear();
  let [readAtMicros, timed, state] = [beganMicros, 0, QUIET];
  const changes: [number, AlertPhase][] = [];
  const second = (): number => Math.round((clock.now() - beganMicros) / 1e6);

  const count = ({ rate = 0, ms, ...more }: Omit<Steady, 'seconds'>): void => {
    counts.count += rate * step;
    timed += rate * step;
    for (const name of Object.keys(counts) as (keyof Counts)[])
      counts[name] += (more[name] ?? 0) * step;
    const whole = Math.floor(timed);
    if (ms !== undefined && whole > 0) times.record(ms * 1000, whole);
    timed -= whole;
  };
  const read = (): void => {
    const spanMs = (clock.now() - readAtMicros) / 1000;
    readAtMicros = clock.now();
    const at = readAtMicros - (Math.min(spanMs, step * 1000) * 1000) / 2;
    series.read(at, spanMs, counts, times);
  };
  const look = (part: Steady): void => {
    if ((second() * 1000) % rule.everyMs !== 0) return;
    const after = evaluate(rule, { series, capacity, holds: holdsOf(part) }, state, clock.now());
    // The first look tells what the state is to begin with.
    if (changes.length === 0) changes.push([0, after.phase === 'learning' ? 'learning' : 'quiet']);
    if (after.phase !== changes.at(-1)![1]) changes.push([second(), after.phase]);
    state = after;
  };

  for (const part of parts) {
    if ('restart' in part) [counts, times] = [noCounts(), new LogLinear()];
    else if ('stalled' in part) clock.advance(part.stalled * 1000);
    else if ('late' in part) {
      for (let passed = 0; passed < part.late; passed += step) count(part);
      clock.advance(part.late * 1000);
    } else {
      for (let passed = 0; passed < part.seconds; passed += step) {
        count(part);
        clock.advance(step * 1000);
        if (!isHeld(rule)) read();
        look(part);
      }
    }
  }
  // A look after the last stretch, in which nothing was read.
  look(parts.at(-1) as Steady);
  return changes;
}

function holdsOf({ holds, breaker }: Steady): boolean | undefined {
  if (breaker === undefined) return holds;
  const conditions = new Conditions();
  const facts = { protection: { db: { breaker: { state: breaker } } } } as unknown as Facts;
  conditions.read(statesOfProcess(facts), [], 0, []);
  return conditions.of('breakerOpen').get('resource:db');
}
