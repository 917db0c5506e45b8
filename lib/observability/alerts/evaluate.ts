import { dailyPeaks, forecast, quantile, useOf } from '../capacity.js';
import { type Stretch } from '../rings.js';
import { type Series } from '../series.js';
import {
  isHeld,
  SECONDS_KEPT_MS,
  type Degraded,
  type DenialRise,
  type ErrorRate,
  type P99Rise,
  type Peak,
  type QpsRise,
  type Rule,
  type SlowCalls,
} from './rules.js';

export type AlertPhase = 'quiet' | 'learning' | 'pending' | 'firing' | 'resolved';

/** The state of one rule on one series. Instants are of the clock of `evaluate`. */
export interface AlertState {
  readonly phase: AlertPhase;
  readonly sinceMicros: number;
  readonly value: number;
  readonly threshold: number;
  /** The usual figure, as of when the series began to be unusual. */
  readonly baseline?: number;
  /** Of `peak`: the limit that it is near, in tokens per second; and whether it is because the trend reaches that. */
  readonly limit?: number;
  readonly isTrend?: boolean;
  /** Evaluations in a row that said yes. */
  readonly times: number;
  /** Since when the cause is gone. */
  readonly goneMicros?: number;
  /** Why it is over, where it is not because the cause is gone. */
  readonly reason?: 'new usual' | 'rule removed';
}

/** The subject of a rule. */
export interface Subject {
  readonly series?: Series | undefined;
  /** Tokens per second that there are in all. */
  readonly capacity?: number | undefined;
  /** Of rules about states: whether it holds now; undefined if that is not known. */
  readonly holds?: boolean | undefined;
}

export const QUIET: AlertState = {
  ...{ phase: 'quiet', sinceMicros: 0, value: 0, threshold: 0, times: 0 },
};

/** The figures of a rule at an instant. */
interface Measure {
  readonly value: number;
  readonly threshold: number;
  readonly isOver: boolean;
  /** The cause is gone. Neither is true between the two. */
  readonly isGone: boolean;
  readonly baseline?: number;
  readonly ofPeak?: Pick<AlertState, 'limit' | 'isTrend'>;
}

type Measured = Measure | 'learning' | 'too little';

/**
 * The next state of an alert. Pure: the series, and the alert so far, decide. An alert fires once
 * the rule has held often or long enough, and is over once its cause was gone for `hold`; in
 * between nothing changes, so a figure that wavers around its threshold makes one alert.
 */
export function evaluate(
  rule: Rule,
  subject: Subject,
  before: AlertState,
  nowMicros: number,
): AlertState {
  const { phase } = before;
  // The usual figure must not follow an unusual one.
  const usual = phase === 'pending' || phase === 'firing' ? before.baseline : undefined;
  const seen = measure(rule, subject, nowMicros, usual);
  if (seen === 'learning')
    return phase === 'firing' ? before : calm(before, 'learning', rule, nowMicros);
  if (seen === 'too little') {
    return phase === 'firing' ? withoutGone(before) : calm(before, 'quiet', rule, nowMicros);
  }
  const { value, threshold, ofPeak } = seen;
  const now = { ...before, value, threshold, ...ofPeak };
  if (phase === 'firing') return whileFiring(rule, now, seen, nowMicros);
  if (!seen.isOver) return { ...calm(before, 'quiet', rule, nowMicros), value, threshold };
  const times = before.times + 1;
  const sinceMicros = phase === 'pending' ? before.sinceMicros : nowMicros;
  const found = {
    value,
    threshold,
    times,
    ...ofPeak,
    ...(seen.baseline !== undefined && { baseline: seen.baseline }),
  };
  if (isDue(rule, times, nowMicros - sinceMicros)) {
    return { ...found, phase: 'firing', sinceMicros: nowMicros };
  }
  return { ...found, phase: 'pending', sinceMicros };
}

/** The alert of a rule that is no more. */
export const removed = (before: AlertState, nowMicros: number): AlertState => ({
  ...over(before, nowMicros),
  reason: 'rule removed',
});

function whileFiring(rule: Rule, now: AlertState, seen: Measure, nowMicros: number): AlertState {
  if (rule.name === 'qpsRise' && nowMicros - now.sinceMicros >= rule.newUsualAfterMs * 1000) {
    return { ...over(now, nowMicros), reason: 'new usual' };
  }
  if (!seen.isGone) return withoutGone(now);
  const goneMicros = now.goneMicros ?? nowMicros;
  if (nowMicros - goneMicros >= rule.holdMs * 1000) return over(now, nowMicros);
  return { ...now, goneMicros };
}

function isDue(rule: Rule, times: number, micros: number): boolean {
  if (isHeld(rule)) return micros >= rule.afterMs * 1000;
  return rule.name !== 'qpsRise' || times >= rule.evaluations;
}

function withoutGone({ goneMicros: _, ...rest }: AlertState): AlertState {
  return rest;
}

const over = ({ value, threshold }: AlertState, nowMicros: number): AlertState => ({
  ...{ phase: 'resolved', sinceMicros: nowMicros, value, threshold, times: 0 },
});

/** Nothing to tell. An alert that is over is shown as such for a while. */
function calm(
  before: AlertState,
  phase: 'quiet' | 'learning',
  rule: Rule,
  nowMicros: number,
): AlertState {
  const age = nowMicros - before.sinceMicros;
  if (before.phase === 'resolved' && age < rule.holdMs * 1000) return before;
  const sinceMicros = before.phase === phase ? before.sinceMicros : nowMicros;
  return { ...QUIET, phase, sinceMicros };
}

function measure(rule: Rule, subject: Subject, nowMicros: number, usual?: number): Measured {
  if (isHeld(rule)) return heldOf(subject.holds);
  const { series } = subject;
  if (series === undefined) return 'too little';
  switch (rule.name) {
    case 'qpsRise':
      return qpsRise(rule, series, nowMicros, usual);
    case 'errorRate':
      return errorRate(rule, series, nowMicros);
    case 'p99Rise':
      return p99Rise(rule, series, nowMicros, usual);
    case 'denialRise':
      return denialRise(rule, series, nowMicros, usual);
    case 'slowCalls':
      return slowCalls(rule, series, nowMicros);
    case 'degraded':
      return degraded(rule, series, nowMicros);
    case 'peak':
      return peak(rule, series, nowMicros, subject.capacity);
  }
}

function heldOf(holds: boolean | undefined): Measured {
  if (holds === undefined) return 'too little';
  return { value: holds ? 1 : 0, threshold: 1, isOver: holds, isGone: !holds };
}

function qpsRise(
  rule: QpsRise,
  { seconds, minutes }: Series,
  nowMicros: number,
  usual?: number,
): Measured {
  const baseline = usual ?? usualOf(rule, minutes, nowMicros, rateOf);
  if (baseline === undefined) return 'learning';
  const slots = Math.ceil(rule.windowMs / SECOND_MS);
  const stretch = seconds.stretch(nowMicros, slots);
  // A fleet is looked at every few seconds: a slot then covers several, and others are empty.
  if (stretch.of('spanMs') * 2 < rule.windowMs) return 'too little';
  return above(rule, rateOf(stretch), rule.factor * Math.max(baseline, rule.minRate), baseline);
}

function errorRate(rule: ErrorRate, series: Series, nowMicros: number): Measured {
  const short = lately(series, nowMicros, rule.windowMs);
  if (short.of('count') < rule.minRequests) return 'too little';
  const long = lately(series, nowMicros, rule.longWindowMs);
  const failed = (stretch: Stretch): number => stretch.of('errors') / stretch.of('count');
  return above(rule, Math.min(failed(short), failed(long)), rule.above);
}

function p99Rise(rule: P99Rise, series: Series, nowMicros: number, usual?: number): Measured {
  const slots = Math.ceil(rule.windowMs / MINUTE_MS);
  const baseline = usual ?? usualP99(rule, series, nowMicros, slots);
  if (baseline === undefined) return 'learning';
  const times = series.times(nowMicros, slots);
  if (times.count < rule.minRequests) return 'too little';
  const threshold = Math.max(rule.factor * baseline, rule.aboveMs * 1000);
  return above(rule, times.quantile(0.99), threshold, baseline);
}

/** The median of the minutes: one slow minute of the hour is not what is usual. */
function usualP99(
  { baselineMs }: P99Rise,
  { minutes }: Series,
  nowMicros: number,
  skip: number,
): number | undefined {
  const slots = Math.ceil(baselineMs / MINUTE_MS);
  const known = minutes
    .last(nowMicros - (skip + 1) * MINUTE_MS * 1000, slots)
    .flatMap((slot) => (slot === undefined || Number.isNaN(slot.p99) ? [] : [slot.p99]))
    .sort((a, b) => a - b);
  return known.length * 2 < slots ? undefined : quantile(known, 0.5);
}

function denialRise(rule: DenialRise, series: Series, nowMicros: number, usual?: number): Measured {
  const baseline = usual ?? usualOf(rule, series.minutes, nowMicros, deniedPart);
  if (baseline === undefined) return 'learning';
  const stretch = lately(series, nowMicros, rule.windowMs);
  if (stretch.of('count') < rule.minRequests) return 'too little';
  return above(rule, deniedPart(stretch), Math.max(rule.above, rule.factor * baseline), baseline);
}

function slowCalls(rule: SlowCalls, series: Series, nowMicros: number): Measured {
  const stretch = lately(series, nowMicros, rule.windowMs);
  // Those turned away took no time.
  const made = stretch.of('count') - stretch.of('denied');
  if (made <= 0) return 'too little';
  const slow = stretch.of('slow');
  const seen = above(rule, slow / made, rule.above);
  return { ...seen, isOver: seen.isOver && slow >= rule.minCalls };
}

function degraded(rule: Degraded, series: Series, nowMicros: number): Measured {
  const stretch = lately(series, nowMicros, rule.windowMs);
  const count = stretch.of('count');
  if (count === 0) return 'too little';
  const answers = stretch.of(`degraded${rule.level}`);
  const seen = above(rule, answers / count, rule.above);
  // Few answers start no alert, and yet may end one: that they are few is what was waited for.
  return { ...seen, isOver: seen.isOver && answers >= rule.minAnswers };
}

function peak(
  rule: Peak,
  { hours }: Series,
  nowMicros: number,
  capacity: number | undefined,
): Measured {
  if (hours === undefined || capacity === undefined) return 'too little';
  // An hour that has only begun has no minute yet, and a few seconds of a burst are none.
  const whole = hours
    .last(nowMicros, Math.ceil(rule.windowMs / HOUR_MS))
    .filter((slot) => slot !== undefined && slot.spanMs >= MINUTE_MS);
  const use = useOf(whole, 'used');
  if (use === undefined) return 'too little';
  const trend = forecast(dailyPeaks(hours, nowMicros, 'used'), capacity);
  const isTrend = trend.kind === 'growing' && trend.daysLeft * DAY_MS <= rule.horizonMs;
  const value = use.peak / capacity;
  return {
    ...{ value, threshold: rule.above, ofPeak: { limit: capacity, isTrend } },
    isOver: value >= rule.above || isTrend,
    isGone: value < rule.resolveAt * rule.above && !isTrend,
  };
}

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

function above({ resolveAt }: Rule, value: number, threshold: number, baseline?: number): Measure {
  const usual = baseline === undefined ? {} : { baseline };
  return {
    value,
    threshold,
    isOver: value > threshold,
    isGone: value < resolveAt * threshold,
    ...usual,
  };
}

/** The last time: by seconds, or if it is longer by minutes with the one that goes on. */
function lately({ seconds, minutes }: Series, nowMicros: number, windowMs: number): Stretch {
  if (windowMs <= SECONDS_KEPT_MS) {
    return seconds.stretch(nowMicros, Math.ceil(windowMs / SECOND_MS));
  }
  return minutes.stretch(nowMicros, Math.ceil(windowMs / MINUTE_MS), -1);
}

/** The figure of the whole minutes before the window; undefined if less than half of them have data. */
function usualOf(
  { windowMs, baselineMs }: QpsRise | DenialRise,
  minutes: Series['minutes'],
  nowMicros: number,
  figure: (stretch: Stretch) => number,
): number | undefined {
  const slots = Math.ceil(baselineMs / MINUTE_MS);
  const stretch = minutes.stretch(nowMicros - windowMs * 1000, slots);
  return stretch.slots * 2 < slots ? undefined : figure(stretch);
}

function rateOf(stretch: Stretch): number {
  const spanMs = stretch.of('spanMs');
  return spanMs > 0 ? (stretch.of('count') * SECOND_MS) / spanMs : 0;
}

function deniedPart(stretch: Stretch): number {
  const count = stretch.of('count');
  return count > 0 ? stretch.of('denied') / count : 0;
}
