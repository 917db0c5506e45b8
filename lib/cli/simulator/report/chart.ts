import { type Requests } from '../engine/observations.js';
import { type RunPlan, type RunRecord } from '../engine/run.js';
import { capacityOf } from '../measure/figures.js';
import { countBySpan } from '../measure/sliding-span.js';

export type Point = readonly [x: number, y: number];

export interface ChartSeries {
  readonly name: string;
  readonly points: readonly Point[];
  readonly style?: 'line' | 'dashed' | 'faint';
}

export interface Panel {
  readonly yLabel: string;
  readonly xLabel: string;
  readonly xScale?: 'linear' | 'log';
  readonly series: readonly ChartSeries[];
  /** Events, as vertical lines. */
  readonly marks?: readonly { readonly x: number; readonly label: string }[];
}

export interface Chart {
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** Rates are drawn as means over spans of this length. */
const SPAN_SECONDS = 0.1;

/** Tokens per second over time. */
export function ratePoints(at: readonly number[], { cost, seconds }: RunPlan): Point[] {
  return countBySpan(at, SPAN_SECONDS, seconds).map((count, i) => [
    (i + 0.5) * SPAN_SECONDS,
    (count * cost) / SPAN_SECONDS,
  ]);
}

/** The token curve of a run: admitted, offered and ideal rate above, the cluster's bucket below. */
export function tokenChart(title: string, plan: RunPlan, run: RunRecord, ideal: Requests): Chart {
  const capacity = capacityOf(plan.quota.figures);
  const rates: ChartSeries[] = [
    { name: 'offered', points: ratePoints(run.offered.at, plan), style: 'faint' },
    { name: 'ideal', points: ratePoints(ideal.at, plan), style: 'dashed' },
    { name: 'admitted', points: ratePoints(run.admitted.at, plan) },
    { name: 'capacity', points: level(capacity, plan), style: 'dashed' },
  ];
  return { title, panels: [ratePanel(plan, rates), bucketPanel(plan, run)] };
}

export function ratePanel(plan: RunPlan, series: readonly ChartSeries[]): Panel {
  return { yLabel: 'tokens per second', xLabel: 'seconds', series, marks: marksOf(plan) };
}

export function bucketPanel(plan: RunPlan, { samples }: RunRecord): Panel {
  const shown = samples.filter(({ second }) => second <= plan.seconds);
  return {
    yLabel: 'tokens',
    xLabel: 'seconds',
    series: [
      { name: 'level', points: shown.map(({ second, level }) => [second, level]) },
      { name: 'outstanding', points: shown.map((s) => [s.second, s.outstanding]) },
    ],
    marks: marksOf(plan),
  };
}

function level(value: number, { seconds }: RunPlan): Point[] {
  return [
    [0, value],
    [seconds, value],
  ];
}

function marksOf({ faults = [] }: RunPlan): { x: number; label: string }[] {
  return faults.flatMap(({ second, label }) => (label === undefined ? [] : { x: second, label }));
}
