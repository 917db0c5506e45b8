import { compare, medianRatio } from './statistics.js';
import { type Series } from './suite.js';

/**
 * Twins are two contenders of the same code, the second one named "… again". How far their ratio is from
 * 1 is how far every other ratio of the case can be off, so where it is more than this, no bar of the case
 * is decided.
 */
export const MOST_APART = 0.05;

/** The most rounds until twins agree, as a multiple of those that were asked for. */
export const MOST_TIMES_ROUNDS = 4;

const AGAIN = ' again';

type Figures = Pick<Series, 'values' | 'isUnpaired'>;

/** The largest distance from 1 of the ratio of twins; NaN where there are none. */
export function apart(figures: ReadonlyMap<string, Figures>): number {
  let largest = NaN;
  for (const [label, again] of figures) {
    const first = label.endsWith(AGAIN) && figures.get(label.slice(0, -AGAIN.length));
    if (!first) continue;
    const { ratio } = again.isUnpaired
      ? compare(again.values, first.values)
      : { ratio: medianRatio(again.values, first.values) };
    const distance = Math.abs(ratio - 1);
    if (!(largest >= distance)) largest = distance;
  }
  return largest;
}

/** The same of a metric of a case. */
export function apartIn(series: readonly Series[], caseName: string, metric: string): number {
  const those = series.filter((one) => one.case === caseName && one.metric === metric);
  return apart(new Map(those.map((one) => [one.contender, one])));
}

/** The error of the ratios of each case. */
export function twinNotes(series: readonly Series[]): string[] {
  const cases = new Map(series.map(({ case: name, metric }) => [name, metric]));
  return Array.from(cases, ([name, metric]) => {
    const percent = 100 * apartIn(series, name, metric);
    return `${name}: twins are ${percent.toFixed(2)} % apart.`;
  });
}
