import { z } from 'zod';
import { choice, duration, field, group, named, ratio, text, whole } from './fields.js';

const RISING = 'percentages that rise, the last of them 100, such as [10, 30, 50, 100]';

const stepsSchema = z
  .array(whole(1, 100), { error: RISING })
  .min(1, { error: RISING })
  .refine((steps) => isRisingTo100(steps), { error: RISING });

function isRisingTo100(steps: readonly number[]): boolean {
  return steps.at(-1) === 100 && steps.every((step, i) => i === 0 || step > steps[i - 1]!);
}

const recoverySchema = group({
  probeInterval: field(duration(), 'How often one probe is let through while degraded', '10s'),
  successes: field(whole(1, 1000), 'Successful probes in a row that begin the way back', 3),
  steps: field(stepsSchema, 'Percent of the requests let through, step by step', [10, 30, 50, 100]),
  stepTime: field(duration(), 'How long a step lasts at least', '10s'),
  stepRequests: field(whole(), 'How many requests a step sees at least', 20),
  tolerance: field(ratio(), 'The part of a step that may fail without falling back', 0),
});

const settings = {
  state: field(
    choice('auto', 'forced', 'disabled', 'observe'),
    'Left to the machine, degraded by an operator, never degraded, or watched only',
    'auto',
  ),
  level1Ttl: field(duration(), 'How old an answer of the shared cache may be', '30s'),
  level2Ttl: field(duration(), 'How old an answer of the process cache may be', '5m'),
  maxValueBytes: field(whole(), 'Larger answers are not cached', 1_048_576),
  deadline: field(duration(), 'By then one of the levels has answered'),
  coreFields: field(
    z.array(text('the name of a field'), { error: 'a list of field names' }),
    'The fields that are left in a simplified answer',
  ),
  recovery: field(recoverySchema, 'The way back to normal'),
};

export const degradationSchema = group({
  ...settings,
  resources: field(
    named(group(settings), 'resources or routes'),
    "Other settings for some resources or routes ('CatController.find')",
  ),
});
