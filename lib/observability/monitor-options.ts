import { plainObject, rejectUnknown, wholeAbove0, withoutUndefined } from '../common/validate.js';

/** More names would not fit into the metrics of a process anyway. */
const MOST_SERIES = 1000;

/** What is watched while the service runs. The initial values are the defaults. */
export class MonitorOptions {
  /** Policies, apps and resources that are watched one by one, the busiest first; the rest is `(other)`. */
  maxSeries = 100;
}

const KNOWN = [...Object.keys(new MonitorOptions())];

/** The options with their defaults; undefined if nothing is to be watched. */
export function checkMonitorOptions(
  input: Partial<MonitorOptions> | false,
): MonitorOptions | undefined {
  if (input === false) return undefined;
  plainObject('monitor', input, 'an object, or false');
  rejectUnknown('monitor', input, KNOWN);
  const options = Object.assign(new MonitorOptions(), withoutUndefined(input));
  wholeAbove0('monitor.maxSeries', options.maxSeries, MOST_SERIES);
  return options;
}
