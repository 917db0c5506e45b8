import { InvalidArgumentError } from '../common/errors.js';
import {
  oneOf,
  plainObject,
  rejectUnknown,
  wholeAbove0,
  withoutUndefined,
} from '../common/validate.js';
import { type AlertSink } from './alerts/sinks/sink.js';
import { type DenialListener } from '../requests/request-counts.js';

/** More names would not fit into the metrics of a process anyway. */
const MOST_SERIES = 1000;

const MOST_SINKS = 20;
const isSink = (one: unknown): boolean =>
  typeof (one as Partial<AlertSink> | undefined)?.send === 'function';

export const KEY_DISPLAYS = ['hashed', 'plain', 'off'] as const;

/** The monitor's options. The initial values are the defaults. */
export class MonitorOptions {
  /** The times and errors of guarded HTTP routes. */
  responses = true;
  /** Shares the figures with the other processes through the store, so that any of them can show all. */
  fleet = true;
  /** How the keys that are denied most are shown: as a hash, as they are, or not at all. */
  keys: (typeof KEY_DISPLAYS)[number] = 'hashed';
  /** Policies, apps and resources that are watched one by one, the busiest first; the rest is `(other)`. */
  maxSeries = 100;
  /** Where alerts go, beside the log. */
  sinks: readonly AlertSink[] = [];
  /** Called for each denied request, in its own async context: for logs and spans. */
  onDenied?: DenialListener;
}

const KNOWN = [...Object.keys(new MonitorOptions()), 'onDenied'];

/** The options with their defaults; undefined if nothing is to be watched. */
export function checkMonitorOptions(
  input: Partial<MonitorOptions> | false,
): MonitorOptions | undefined {
  if (input === false) return undefined;
  plainObject('monitor', input, 'an object, or false');
  rejectUnknown('monitor', input, KNOWN);
  const options = Object.assign(new MonitorOptions(), withoutUndefined(input));
  const { onDenied } = options;
  for (const name of ['responses', 'fleet'] as const) {
    if (typeof options[name] === 'boolean') continue;
    throw new InvalidArgumentError(`monitor.${name}`, options[name], 'true or false');
  }
  oneOf('monitor.keys', options.keys, KEY_DISPLAYS);
  const { sinks } = options as { sinks: unknown };
  if (!Array.isArray(sinks) || sinks.length > MOST_SINKS || !sinks.every(isSink)) {
    const expected = `a list of up to ${MOST_SINKS} sinks, { send(batch) }`;
    throw new InvalidArgumentError('monitor.sinks', sinks, expected);
  }
  wholeAbove0('monitor.maxSeries', options.maxSeries, MOST_SERIES);
  if (onDenied !== undefined && typeof onDenied !== 'function') {
    throw new InvalidArgumentError('monitor.onDenied', onDenied, 'a function');
  }
  return options;
}
