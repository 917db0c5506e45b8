import { type FatesByTier } from './callers.js';
import { TIERS, type Tier } from './merchants.js';
import { CAPACITY } from './shop-process.js';

/** What callers saw of some seconds. */
export interface Figures {
  readonly sent: number;
  /** Answers in time, as a part of what the shop could give. */
  readonly goodput: number;
  readonly p50Ms: number | undefined;
  readonly p99Ms: number | undefined;
  /** Parts of each tier's requests. */
  readonly inTime: Readonly<Record<Tier, number>>;
  readonly refused: number;
  readonly gaveUp: number;
}

export function figuresOf(
  byTier: FatesByTier,
  tookMs: readonly number[],
  seconds: number,
): Figures {
  const sums = { inTime: 0, late: 0, refused: 0, gaveUp: 0 };
  const inTime: Record<Tier, number> = { S: 0, A: 0, B: 0, C: 0 };
  for (const tier of TIERS) {
    const one = byTier[tier];
    const all = one.inTime + one.late + one.refused + one.gaveUp;
    inTime[tier] = all === 0 ? 0 : one.inTime / all;
    for (const fate of ['inTime', 'late', 'refused', 'gaveUp'] as const) sums[fate] += one[fate];
  }
  const sent = sums.inTime + sums.late + sums.refused + sums.gaveUp;
  return {
    sent,
    goodput: sums.inTime / seconds / CAPACITY,
    p50Ms: tookMs[Math.floor(tookMs.length * 0.5)],
    p99Ms: tookMs[Math.floor(tookMs.length * 0.99)],
    inTime,
    refused: sent === 0 ? 0 : sums.refused / sent,
    gaveUp: sent === 0 ? 0 : sums.gaveUp / sent,
  };
}

export function tableOf(columns: Readonly<Record<string, Figures>>): string {
  const percent = (part: number): string => `${Math.round(part * 100)} %`;
  const ms = (time: number | undefined): string =>
    time === undefined ? '–' : `${Math.round(time)} ms`;
  const rows: [string, (one: Figures) => string][] = [
    ['answers in time, of the capacity', ({ goodput }) => percent(goodput)],
    ['half of the answers, 99 of 100', ({ p50Ms, p99Ms }) => `${ms(p50Ms)}, ${ms(p99Ms)}`],
    ...TIERS.map((tier): [string, (one: Figures) => string] => [
      `tier ${tier} in time`,
      ({ inTime }) => percent(inTime[tier]),
    ]),
    ['refused', ({ refused }) => percent(refused)],
    ['without an answer', ({ gaveUp }) => percent(gaveUp)],
  ];
  const lines = [['', ...Object.keys(columns)]];
  for (const [name, tell] of rows) lines.push([name, ...Object.values(columns).map(tell)]);
  return lines
    .map(([name = '', ...cells]) => name.padEnd(34) + cells.map((one) => one.padStart(16)).join(''))
    .join('\n');
}
