import { Group, literal, number, union, type Schema } from '../common/schema.js';
import {
  between,
  choice,
  duration,
  field,
  group,
  named,
  part,
  text,
  whole,
} from '../common/schema-fields.js';
import { BREAKER_MODES } from './breaker.js';
import {
  A_PART,
  A_SHARE,
  BreakerOptions,
  BULKHEAD_LIMITS,
  BulkheadOptions,
  LARGEST_RATIO,
  MOST_CALLS,
  PRESETS,
  SlowCallOptions,
  ThrottleOptions,
  type PresetName,
} from './resource-options.js';

const breaker = new BreakerOptions();
const bulkhead = new BulkheadOptions();
const slow = new SlowCallOptions();
const throttle = new ThrottleOptions();

const breakerSchema = group({
  window: field(
    union('a duration, or { calls: number }', duration(), group({ calls: whole(1, MOST_CALLS) })),
    'The time, or the number of calls, that it looks back on',
    breaker.window,
  ),
  minimumCalls: field(
    whole(1, MOST_CALLS),
    'It does not open on fewer calls',
    breaker.minimumCalls,
  ),
  errorRate: field(part(A_SHARE), 'Opens when this part of the calls failed', breaker.errorRate),
  slowRate: field(part(A_SHARE), 'Opens when this part of the calls was slow', breaker.slowRate),
  slowCall: field(duration(), 'A call that takes longer is slow; without it, slow.threshold'),
  openFor: field(duration(), 'How long it stays open before it tries again', breaker.openFor),
  probes: field(whole(1, MOST_CALLS), 'Calls that may try at the same time', breaker.probes),
  successes: field(whole(1, MOST_CALLS), 'Tries in a row that must succeed', breaker.successes),
  probeLease: field(duration(), 'A try without an outcome for so long has failed'),
  mode: field(
    choice(...BREAKER_MODES),
    'Left to the breaker, open by an operator, never open, or only watched',
    breaker.mode,
  ),
});

const bulkheadSchema = group({
  maxInFlight: field(whole(1, MOST_CALLS), 'Calls under way at once', bulkhead.maxInFlight),
  maxQueue: field(
    whole(0, MOST_CALLS),
    'Calls that may wait for a slot; without it, as many as maxInFlight',
  ),
  maxWait: field(
    duration(),
    'How long a call may wait before it begins, for a slot and for the tokens of rate',
    bulkhead.maxWait,
  ),
  heldWarning: field(
    orOff(duration(), 'a duration'),
    'A call that holds its slot longer is warned of',
    bulkhead.heldWarning,
  ),
  limit: field(
    choice(...BULKHEAD_LIMITS),
    'Always maxInFlight, or fewer while calls take longer than usual',
    bulkhead.limit,
  ),
});

const throttleSchema = group({
  ratio: field(
    between(1, LARGEST_RATIO),
    'So many calls go out for each that is accepted, before any is held back',
    throttle.ratio,
  ),
  window: field(duration(), 'The time that it looks back on', throttle.window),
  minimumCalls: field(
    whole(1, MOST_CALLS),
    'On fewer calls none is held back',
    throttle.minimumCalls,
  ),
  most: field(
    number(A_PART, { exclusiveMinimum: 0, exclusiveMaximum: 1 }),
    'The part of calls that is held back at most',
    throttle.most,
  ),
});

const slowSchema = group({
  threshold: field(
    duration(),
    'Calls that take longer are slow; the log has a line a minute',
    slow.threshold,
  ),
  sampleEvery: field(whole(), 'Every so many-th of them is told of', slow.sampleEvery),
  maxLabel: field(whole(), 'Characters of a label that are told', slow.maxLabel),
});

const { redis, database } = PRESETS;
const PRESET_FIGURES =
  `redis ${redis.bulkhead.maxInFlight} in flight, ${redis.bulkhead.maxWait} ms wait, then ` +
  `${redis.deadline} ms deadline; database ${database.bulkhead.maxInFlight}, ` +
  `${database.bulkhead.maxWait / 1000} s, ${database.deadline} ms`;

const preset = choice(...(Object.keys(PRESETS) as PresetName[]));

const A_POLICY = 'the name of a policy';
const A_RATE = `${A_POLICY}, an object with policy and key`;

const rateSchema = group({
  policy: field(text(A_POLICY), 'The policy that calls are charged to'),
  key: field(
    new Group('{ arg: place }, or { arg: place, path }', {
      arg: whole(0),
      path: field(text("a path such as 'sku.id'"), 'Where in the argument the value is'),
    }),
    'Whose tokens a call takes; without it all calls of the resource share a bucket',
  ),
});

const resourceSchema = group({
  preset: field(preset, `Figures to begin with: ${PRESET_FIGURES}`),
  deadline: field(
    orOff(duration(), 'a duration'),
    'How long a call may take from when it begins; maxWait comes before it',
  ),
  bulkhead: field(
    orOff(bulkheadSchema, 'an object with maxInFlight, maxWait…'),
    'How many calls at a time',
  ),
  breaker: field(
    orOff(breakerSchema, 'an object with window, errorRate…'),
    'When calls are not even tried',
  ),
  throttle: field(
    orOff(throttleSchema, 'an object with ratio, window…'),
    'Which calls are held back because the resource refuses them',
  ),
  slow: field(orOff(slowSchema, 'an object with threshold…'), 'Which calls are slow, and told of'),
  rate: field(
    orOff(union(A_RATE, text(A_POLICY), rateSchema), A_RATE),
    'The policy that limits the rate of calls',
  ),
  maxValueBytes: field(orOff(whole(), 'a whole number from 1 on'), 'Larger values are refused'),
});

/** Each part of a preset can be switched off. */
function orOff<T>(of: Schema<T>, what: string) {
  const expected = `${what}, or false`;
  return union(expected, of, literal(expected, false));
}

/** The section of the document. What it cannot say of fields together, `compileResource` says. */
export const protectionSchema = named(
  union("'redis', 'database', or an object of settings", preset, resourceSchema),
  'resources',
);
