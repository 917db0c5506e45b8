import { List, literal, number, union } from '../common/schema.js';
import {
  choice,
  duration,
  field,
  group,
  named,
  part,
  text,
  whole,
} from '../common/schema-fields.js';
import {
  A_PART,
  A_RATE,
  A_TOLERANCE,
  DEFAULT_MODE,
  MODES,
  MOST_AT_ONCE,
  MOST_CALLS,
  MOST_ENTRIES,
  MOST_RATE,
  MOST_STEPS,
  RecoveryOptions,
} from './core/options.js';
import { DegradeModuleOptions } from './degrade-module-options.js';

const defaults = new DegradeModuleOptions();
const recovery = new RecoveryOptions();

const RISING = 'percentages that rise, the last of them 100, such as [10, 30, 50, 100]';

const stepsSchema = new List(
  RISING,
  whole(1, 100),
  { minItems: 1, maxItems: MOST_STEPS },
  isRisingTo100,
);

function isRisingTo100(steps: readonly number[]): boolean {
  return steps.at(-1) === 100 && steps.every((step, i) => i === 0 || step > steps[i - 1]!);
}

const tolerance = number(A_TOLERANCE, { minimum: 0, exclusiveMaximum: 1 });

const recoverySchema = group({
  window: field(duration(), 'Failures are counted over this span…', recovery.window),
  minCalls: field(whole(1, MOST_CALLS), '…and mean nothing below so many calls', recovery.minCalls),
  errorRate: field(
    part(A_RATE, MOST_RATE),
    'From this part of failed calls on a resource is degraded',
    recovery.errorRate,
  ),
  slow: field(duration(), 'A call that takes longer is slow; without it, none is'),
  slowRate: field(
    part(A_RATE, MOST_RATE),
    'From this part of slow calls on a resource is degraded',
    recovery.slowRate,
  ),
  probeInterval: field(
    duration(),
    'How often one probe is let through while degraded',
    recovery.probeInterval,
  ),
  successThreshold: field(
    whole(1, MOST_CALLS),
    'Probes in a row that must succeed',
    recovery.successThreshold,
  ),
  probeTimeout: field(
    duration(),
    'A probe without an outcome for twice as long has failed',
    recovery.probeTimeout,
  ),
  steps: field(stepsSchema, 'Percent of the requests let through, step by step', recovery.steps),
  stageMin: field(duration(), 'How long a step lasts at least…', recovery.stageMin),
  minSamples: field(whole(1, MOST_CALLS), '…and how many calls it sees…', recovery.minSamples),
  stageMax: field(
    duration(),
    '…but where there are few, one is enough after this',
    recovery.stageMax,
  ),
  tolerance: field(tolerance, 'The part of the calls of a step that may fail', recovery.tolerance),
});

const A_LEVEL = '1, 2, 3 or 4';
const level = union(
  A_LEVEL,
  literal(A_LEVEL, 1),
  literal(A_LEVEL, 2),
  literal(A_LEVEL, 3),
  literal(A_LEVEL, 4),
);

const coreFields = new List('a list of field names', text('the name of a field'));

const resourceSchema = group({
  mode: field(
    choice(...MODES),
    'Left to the machine, degraded by an operator, never degraded, or only watched',
    DEFAULT_MODE,
  ),
  level: field(level, "With mode 'forced': the level to answer from"),
  level1Ttl: field(duration(), 'As above, for this one'),
  level2Ttl: field(duration(), 'As above, for this one'),
  coreFields: field(coreFields, 'As above, for this one'),
  recovery: field(recoverySchema, 'As above, for this one'),
});

/** The section of the document. What it cannot say of fields together, `checkDegradeModule` says. */
export const degradationSchema = group({
  level1Ttl: field(duration(), 'How old an answer of the shared cache may be', defaults.level1Ttl),
  level2Ttl: field(duration(), 'How old an answer of the process cache may be', defaults.level2Ttl),
  level1Timeout: field(
    duration(),
    'How long the shared cache is waited for',
    defaults.level1Timeout,
  ),
  slow: field(
    duration(),
    'From then on the levels are tried while the handler still runs',
    defaults.slow,
  ),
  deadline: field(duration(), 'A request that reads has its answer by then', defaults.deadline),
  refreshAfter: field(
    part(A_PART),
    'A normal answer is stored again after this part of level1Ttl',
    defaults.refreshAfter,
  ),
  maxEntries: field(whole(1, MOST_ENTRIES), 'Answers in the process cache', defaults.maxEntries),
  maxBytes: field(whole(), 'Bytes in the process cache', defaults.maxBytes),
  maxReads: field(
    whole(1, MOST_AT_ONCE),
    'Reads of the shared cache under way at once',
    defaults.maxReads,
  ),
  maxFallbacks: field(
    whole(1, MOST_AT_ONCE),
    'Calls of one fallback that run at once',
    defaults.maxFallbacks,
  ),
  coreFields: field(coreFields, 'The fields that are left in a simplified answer'),
  recovery: field(recoverySchema, 'When a resource is ill, and the way back'),
  resources: field(
    named(resourceSchema, 'resources or routes'),
    'Other settings for some resources or routes, by name',
  ),
});
