import { choice, duration, field, flag, group, named, ratio, text, whole } from './fields.js';

const breakerSchema = group({
  enabled: field(flag(), 'Whether there is one', true),
  window: field(duration(), 'The time that it looks back on', '10s'),
  calls: field(whole(), 'It does not open on fewer calls in that time', 20),
  errorRate: field(ratio(), 'Opens when this part of the calls failed', 0.5),
  slowRate: field(ratio(), 'Opens when this part of the calls was slow', 0.5),
  slowCall: field(duration(), 'A call that takes longer is slow; without it, the deadline'),
  openFor: field(duration(), 'How long it stays open before it tries again', '10s'),
});

const slowLogSchema = group({
  above: field(duration(), 'Calls that take longer are logged; without it, the deadline'),
  sample: field(ratio(), 'The part of them that is logged', 1),
});

const resourceSchema = group({
  preset: field(
    choice('redis', 'database'),
    'Figures to begin with: redis 500 in flight, 100 ms wait, 50 ms deadline; database 200, 1 s, 200 ms',
  ),
  deadline: field(duration(), 'A call that takes longer is given up'),
  maxInFlight: field(whole(), 'Calls at the same time'),
  maxQueue: field(whole(0), 'Calls that may wait for their turn'),
  maxWait: field(duration(), 'How long they may wait', '100ms'),
  slotWarning: field(duration(), 'A call that holds its place longer is warned of', '2s'),
  breaker: field(breakerSchema, 'When calls are not even tried'),
  slowLog: field(slowLogSchema, 'Which slow calls are logged'),
  maxValueBytes: field(whole(), 'Larger values are refused'),
  policy: field(text('the name of a policy'), 'The policy that limits the rate of calls'),
});

export const protectionSchema = named(resourceSchema, 'resources');
