import { z } from 'zod';
import {
  between,
  choice,
  duration,
  field,
  group,
  named,
  ratio,
  text,
  whole,
} from '../common/schema-fields.js';

const RISING = 'percentages that rise, the last of them 100, such as [10, 30, 50, 100]';

const stepsSchema = z
  .array(whole(1, 100), { error: RISING })
  .min(1, { error: RISING })
  .max(20, { error: RISING })
  .refine((steps) => isRisingTo100(steps), { error: RISING });

function isRisingTo100(steps: readonly number[]): boolean {
  return steps.at(-1) === 100 && steps.every((step, i) => i === 0 || step > steps[i - 1]!);
}

const recoverySchema = group({
  window: field(duration(), 'Failures are counted over this span…', '10s'),
  minCalls: field(whole(1, 1e6), '…and mean nothing below so many calls', 20),
  errorRate: field(between(0, 2), 'From this part of failed calls on a resource is degraded', 0.5),
  slow: field(duration(), 'A call that takes longer is slow; without it, none is'),
  slowRate: field(between(0, 2), 'From this part of slow calls on a resource is degraded', 0.5),
  probeInterval: field(duration(), 'How often one probe is let through while degraded', '10s'),
  successThreshold: field(whole(1, 1e6), 'Probes in a row that must succeed', 3),
  probeTimeout: field(duration(), 'A probe without an outcome for twice as long has failed', '5s'),
  steps: field(stepsSchema, 'Percent of the requests let through, step by step', [10, 30, 50, 100]),
  stageMin: field(duration(), 'How long a step lasts at least…', '10s'),
  minSamples: field(whole(1, 1e6), '…and how many calls it sees…', 20),
  stageMax: field(duration(), '…but where there are few, one is enough after this', '60s'),
  tolerance: field(ratio(), 'The part of the calls of a step that may fail', 0),
});

const level = z.union([z.literal(1), z.literal(2), z.literal(3), z.literal(4)], {
  error: '1, 2, 3 or 4',
});

const coreFields = z.array(text('the name of a field'), { error: 'a list of field names' });

const resourceSchema = group({
  mode: field(
    choice('auto', 'forced', 'disabled', 'observe'),
    'Left to the machine, degraded by an operator, never degraded, or only watched',
    'auto',
  ),
  level: field(level, "With mode 'forced': the level to answer from"),
  level1Ttl: field(duration(), 'As above, for this one'),
  level2Ttl: field(duration(), 'As above, for this one'),
  coreFields: field(coreFields, 'As above, for this one'),
  recovery: field(recoverySchema, 'As above, for this one'),
});

export const degradationSchema = group({
  level1Ttl: field(duration(), 'How old an answer of the shared cache may be', '30s'),
  level2Ttl: field(duration(), 'How old an answer of the process cache may be', '5m'),
  level1Timeout: field(duration(), 'How long the shared cache is waited for', '50ms'),
  slow: field(duration(), 'From then on the levels are tried while the handler still runs', '1s'),
  deadline: field(duration(), 'A request that reads has its answer by then', '2s'),
  refreshAfter: field(
    ratio(),
    'A normal answer is stored again after this part of level1Ttl',
    1 / 3,
  ),
  maxEntries: field(whole(1, 10_000_000), 'Answers in the process cache', 10_000),
  maxBytes: field(whole(), 'Bytes in the process cache', 67_108_864),
  maxReads: field(whole(1, 100_000), 'Reads of the shared cache under way at once', 100),
  maxFallbacks: field(whole(1, 100_000), 'Calls of one fallback that run at once', 50),
  coreFields: field(coreFields, 'The fields that are left in a simplified answer'),
  recovery: field(recoverySchema, 'When a resource is ill, and the way back'),
  resources: field(
    named(resourceSchema, 'resources or routes'),
    'Other settings for some resources or routes, by name',
  ),
});
