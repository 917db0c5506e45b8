import { atMost } from '../support/bars.js';
import { CPU, cpuOf, measureCalls, type Contestants } from '../support/calls.js';
import { medianRatio } from '../support/statistics.js';
import { type Suite } from '../support/suite.js';
import { apartIn } from '../support/twins.js';

const CASE = 'a decision';
const MOST_TIMES_UNWATCHED = 1.05;
/** As in the suite `memory`: a hundred million per second, so that all of it is allowed. */
const LIMIT = { keys: 1, limit: 1_000_000, periodMs: 10 };

const UNWATCHED = 'unwatched';
const WATCHED = 'watched';
const CONTESTANTS: Contestants = [
  [UNWATCHED, 'weir-unwatched'],
  // The same thing twice: how far its ratio is from 1 is how far the other can be trusted.
  [`${UNWATCHED} again`, 'weir-unwatched'],
  [WATCHED, 'weir-watched'],
];

export const monitor: Suite = {
  name: 'monitor',
  about: 'what the monitor and its ticks add to a decision',

  async run(context) {
    const series = await measureCalls(CASE, CONTESTANTS, LIMIT, UNWATCHED, context);
    const ratio = medianRatio(cpuOf(WATCHED, CASE, series), cpuOf(UNWATCHED, CASE, series));
    const promise = `a watched decision ≤ ${MOST_TIMES_UNWATCHED} × an unwatched one, ${CPU}`;
    const bars = [atMost(promise, ratio, MOST_TIMES_UNWATCHED, apartIn(series, CASE, CPU))];
    const notes = ['Both count in the same fields; only one has them read once a second.'];
    return { series, absences: [], bars, notes };
  },
};
