import { z } from 'zod';
import {
  choice,
  duration,
  field,
  group,
  named,
  ratio,
  text,
  whole,
} from '../common/schema-fields.js';

const breakerSchema = group({
  window: field(
    z.union([duration(), group({ calls: whole() })], { error: 'a duration, or { calls: number }' }),
    'The time, or the number of calls, that it looks back on',
    '10s',
  ),
  minimumCalls: field(whole(), 'It does not open on fewer calls', 20),
  errorRate: field(ratio(), 'Opens when this part of the calls failed', 0.5),
  slowRate: field(ratio(), 'Opens when this part of the calls was slow', 0.5),
  slowCall: field(duration(), 'A call that takes longer is slow; without it, slow.threshold'),
  openFor: field(duration(), 'How long it stays open before it tries again', '5s'),
  probes: field(whole(), 'Calls that may try at the same time', 1),
  successes: field(whole(), 'Tries in a row that must succeed', 3),
  probeLease: field(duration(), 'A try without an outcome for so long has failed'),
  mode: field(
    choice('auto', 'forced', 'disabled', 'observe'),
    'Left to the breaker, open by an operator, never open, or only watched',
    'auto',
  ),
});

const bulkheadSchema = group({
  maxInFlight: field(whole(), 'Calls under way at once', 100),
  maxQueue: field(whole(0), 'Calls that may wait for a slot; without it, as many as maxInFlight'),
  maxWait: field(
    duration(),
    'How long a call may wait before it begins, for a slot and for the tokens of rate',
    '100ms',
  ),
  heldWarning: field(
    orOff(duration(), 'a duration'),
    'A call that holds its slot longer is warned of',
    '2s',
  ),
});

const slowSchema = group({
  threshold: field(
    duration(),
    'Calls that take longer are slow; the log has a line a minute',
    '200ms',
  ),
  sampleEvery: field(whole(), 'Every so many-th of them is told of', 1),
  maxLabel: field(whole(), 'Characters of a label that are told', 200),
});

const preset = choice('redis', 'database');

const resourceSchema = group({
  preset: field(
    preset,
    'Figures to begin with: redis 500 in flight, 100 ms wait, then 50 ms deadline; database 200, 1 s, 200 ms',
  ),
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
  slow: field(orOff(slowSchema, 'an object with threshold…'), 'Which calls are slow, and told of'),
  rate: field(
    orOff(text('the name of a policy'), 'the name of a policy'),
    'The policy that limits the rate of calls',
  ),
  maxValueBytes: field(orOff(whole(), 'a whole number from 1 on'), 'Larger values are refused'),
});

/** Whatever a preset brings can be switched off. */
function orOff<T extends z.ZodType>(of: T, what: string) {
  return z.union([of, z.literal(false)], { error: `${what}, or false` });
}

export const protectionSchema = named(
  z.union([preset, resourceSchema], { error: "'redis', 'database', or an object of settings" }),
  'resources',
);
