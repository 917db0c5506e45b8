import { checkRecovery } from '../../lib/degradation/core/options.js';
import {
  initialState,
  percentOf,
  reduce,
  type RecoveryEvent,
  type RecoveryState,
} from '../../lib/degradation/core/recovery-reducer.js';

const RULES = { ...checkRecovery({}, 'recovery'), jitter: () => 1 };
const SECOND = 1_000_000;
const START = 100 * SECOND;

const step = (state: RecoveryState, event: RecoveryEvent, now = START): RecoveryState =>
  reduce(state, event, now, RULES);

const settledAs = (
  { epoch, permit }: RecoveryState,
  kind: 'probe' | 'ramped',
  outcome: 'success' | 'failure' | 'neutral',
): RecoveryEvent => ({ type: 'settled', admission: { kind, epoch, permit }, outcome });

const NORMAL = initialState(START);
const DEGRADED = step(NORMAL, { type: 'trip', cause: 'errors' });
const PROBED_AT = START + 10 * SECOND;
const PROBING = step(DEGRADED, { type: 'probe' }, PROBED_AT);
const RAMP_AT = START + 30 * SECOND;
const RAMP = [0, 1, 2].reduce((state, i) => {
  const at = START + (i + 1) * 10 * SECOND;
  const probing = i === 0 ? PROBING : step(state, { type: 'probe' }, at);
  return step(probing, settledAs(probing, 'probe', 'success'), at);
}, DEGRADED);
const LAST_STAGE: RecoveryState = { ...RAMP, stage: 3, samples: 20 };
const FORCED = step(NORMAL, { type: 'force', level: 2 });
const DISABLED = step(NORMAL, { type: 'disable' });

const name = ({ phase, observing }: RecoveryState): string =>
  observing ? `${phase}, observed` : `${phase} ${percentOf({ phase, stage: 0 } as never, RULES)}`;

const at = (state: RecoveryState): string => {
  const percent = percentOf(state, RULES);
  const where = state.phase === 'ramp' ? `ramp ${percent}` : state.phase;
  return state.observing ? `${where}, observed` : where;
};

describe('the table of transitions', () => {
  const trip: RecoveryEvent = { type: 'trip', cause: 'overload' };
  const force: RecoveryEvent = { type: 'force', level: undefined };
  const later = RAMP_AT + 10 * SECOND;

  it.each<[string, RecoveryState, RecoveryEvent, number, string]>([
    ['trouble', NORMAL, trip, START, 'degraded'],
    ['time', NORMAL, { type: 'time' }, later, 'normal'],
    ['a probe nobody needs', NORMAL, { type: 'probe' }, START, 'normal'],
    ['more trouble', DEGRADED, trip, START, 'degraded'],
    ['a probe before its time', DEGRADED, { type: 'probe' }, PROBED_AT - 1, 'degraded'],
    ['a probe', DEGRADED, { type: 'probe' }, PROBED_AT, 'probing'],
    ['the first success', PROBING, settledAs(PROBING, 'probe', 'success'), PROBED_AT, 'probing'],
    ['a failed probe', PROBING, settledAs(PROBING, 'probe', 'failure'), PROBED_AT, 'degraded'],
    ['a neutral probe', PROBING, settledAs(PROBING, 'probe', 'neutral'), PROBED_AT, 'probing'],
    ['the lease is not over', PROBING, { type: 'time' }, PROBED_AT + 10 * SECOND - 1, 'probing'],
    ['the lease is over', PROBING, { type: 'time' }, PROBED_AT + 10 * SECOND, 'degraded'],
    ['trouble while probing', PROBING, trip, PROBED_AT, 'degraded'],
    ['a failed request', RAMP, settledAs(RAMP, 'ramped', 'failure'), RAMP_AT, 'degraded'],
    ['a neutral request', RAMP, settledAs(RAMP, 'ramped', 'neutral'), RAMP_AT, 'ramp 10'],
    ['trouble in the ramp', RAMP, trip, RAMP_AT, 'degraded'],
    ['too few samples', { ...RAMP, samples: 19 }, { type: 'time' }, later, 'ramp 10'],
    ['too short a stage', { ...RAMP, samples: 20 }, { type: 'time' }, later - 1, 'ramp 10'],
    ['a stage well done', { ...RAMP, samples: 20 }, { type: 'time' }, later, 'ramp 30'],
    [
      'few samples, long time',
      { ...RAMP, samples: 1 },
      { type: 'time' },
      RAMP_AT + 60 * SECOND,
      'ramp 30',
    ],
    ['no sample at all', RAMP, { type: 'time' }, RAMP_AT + 600 * SECOND, 'ramp 10'],
    ['the last stage', LAST_STAGE, { type: 'time' }, later, 'normal'],
    ['trouble while forced', FORCED, trip, START, 'forced'],
    ['a probe while forced', FORCED, { type: 'probe' }, later, 'forced'],
    ['trouble while disabled', DISABLED, trip, START, 'disabled'],
    ['resume of forced', FORCED, { type: 'resume' }, START, 'degraded'],
    ['resume of disabled', DISABLED, { type: 'resume' }, START, 'normal'],
    ['resume of normal', NORMAL, { type: 'resume' }, START, 'normal'],
    ['observe', DEGRADED, { type: 'observe' }, START, 'degraded, observed'],
    ['observe of forced', FORCED, { type: 'observe' }, START, 'normal, observed'],
    ['observe of disabled', DISABLED, { type: 'observe' }, START, 'normal, observed'],
    ['resume of observed', { ...DEGRADED, observing: true }, { type: 'resume' }, START, 'degraded'],
    ['force of observed', { ...RAMP, observing: true }, force, START, 'forced'],
    ...[NORMAL, DEGRADED, PROBING, RAMP, DISABLED].map(
      (state): [string, RecoveryState, RecoveryEvent, number, string] => [
        `force of ${name(state)}`,
        state,
        force,
        START,
        'forced',
      ],
    ),
    ...[NORMAL, DEGRADED, PROBING, RAMP, FORCED].map(
      (state): [string, RecoveryState, RecoveryEvent, number, string] => [
        `disable of ${name(state)}`,
        state,
        { type: 'disable' },
        START,
        'disabled',
      ],
    ),
  ])('%s', (_name, state, event, now, expected) => {
    const next = step(state, event, now);
    expect(at(next)).toBe(expected);
    expect(next.epoch).toBe(
      state.epoch + (next.phase === state.phase && event.type !== 'force' ? 0 : 1),
    );
    if (next.phase !== 'probing') expect(next.permit).toBe(0);
  });

  it('gives a second permit only when the first is gone', () => {
    expect(step(PROBING, { type: 'probe' }, PROBED_AT + SECOND)).toBe(PROBING);
    const freed = step(PROBING, settledAs(PROBING, 'probe', 'neutral'), PROBED_AT);
    const again = step(freed, { type: 'probe' }, PROBED_AT + SECOND);
    expect(again).toMatchObject({ permit: PROBING.permit + 1, streak: 0 });
  });

  it('does not count what another epoch or permit brings', () => {
    const stale: RecoveryEvent = {
      type: 'settled',
      admission: { kind: 'probe', epoch: PROBING.epoch - 2, permit: PROBING.permit },
      outcome: 'success',
    };
    expect(step(PROBING, stale, PROBED_AT)).toBe(PROBING);
    const other = { ...settledAs(PROBING, 'probe', 'failure') };
    expect(step({ ...PROBING, permit: PROBING.permit + 1 }, other, PROBED_AT)).toMatchObject({
      phase: 'probing',
    });
    const ramped: RecoveryEvent = {
      type: 'settled',
      admission: { kind: 'ramped', epoch: RAMP.epoch - 1, permit: 0 },
      outcome: 'failure',
    };
    expect(step(RAMP, ramped, RAMP_AT)).toBe(RAMP);
  });

  it('takes a success that comes after its lease for a failure', () => {
    const late = step(PROBING, settledAs(PROBING, 'probe', 'success'), PROBED_AT + 10 * SECOND);
    expect(late.phase).toBe('degraded');
  });

  it('tolerates in the ramp the part of failures that it is told to', () => {
    const rules = { ...RULES, tolerance: 0.05 };
    const fail = (state: RecoveryState): RecoveryState =>
      reduce(state, settledAs(state, 'ramped', 'failure'), RAMP_AT, rules);
    const once = fail(RAMP);
    expect(once).toMatchObject({ phase: 'ramp', failures: 1 });
    expect(fail(once).phase).toBe('degraded');
    expect(fail({ ...RAMP, samples: 39, failures: 1 })).toMatchObject({
      phase: 'ramp',
      failures: 2,
    });
  });

  it('is strict while probing, whatever the tolerance', () => {
    const rules = { ...RULES, tolerance: 0.9 };
    const failed = reduce(PROBING, settledAs(PROBING, 'probe', 'failure'), PROBED_AT, rules);
    expect(failed.phase).toBe('degraded');
  });
});
