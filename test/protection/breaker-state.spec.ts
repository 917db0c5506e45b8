import fc from 'fast-check';
import { type CallOutcome } from '../../lib/common/outcome-window.js';
import {
  aged,
  begun,
  closed,
  granted,
  isHeld,
  leaseOf,
  opened,
  reported,
  type BreakerRules,
  type BreakerState,
  type Lease,
} from '../../lib/protection/breaker-state.js';

const rulesOf = (over: Partial<BreakerRules> = {}): BreakerRules => ({
  openMicros: 5_000_000,
  probes: 1,
  successes: 3,
  leaseMicros: 400_000,
  jitter: () => 0.5,
  ...over,
});

/** Asks for a probe as a breaker does. */
function ask(state: BreakerState, now: number, rules: BreakerRules): [BreakerState, Lease?] {
  const older = aged(state, now, rules);
  const lease = leaseOf(older, now, rules);
  return lease === undefined ? [older] : [granted(older, lease), lease];
}

describe('the states of a breaker', () => {
  it('leave open for half-open when the time is over, and not before', () => {
    const rules = rulesOf();
    const open = opened(1, 0, rules);
    expect(aged(open, 4_999_999, rules)).toBe(open);
    expect(aged(open, 5_000_000, rules)).toMatchObject({ kind: 'half-open', epoch: 2 });
  });

  it('stay open for a fifth more or less, by epoch', () => {
    const until = (jitter: number): unknown => opened(1, 0, rulesOf({ jitter: () => jitter }));
    expect(until(0)).toMatchObject({ untilMicros: 4_000_000 });
    expect(until(1)).toMatchObject({ untilMicros: 6_000_000 });
  });

  it('close after three probes in a row, one after the other', () => {
    const rules = rulesOf();
    let state = aged(opened(1, 0, rules), 5_000_000, rules);
    for (let n = 0; n < 3; n++) {
      expect(state.kind).toBe('half-open');
      const [next, lease] = ask(state, 5_000_000, rules);
      expect(ask(next, 5_000_000, rules)[1]).toBeUndefined();
      state = reported(next, lease!, 'success', 5_000_000, rules);
    }
    expect(state).toMatchObject({ kind: 'closed', epoch: 3 });
  });

  it('take a probe that began and never came back for a failure, one that never began for nothing', () => {
    const rules = rulesOf();
    const [waiting, lease] = ask(aged(opened(1, 0, rules), 5_000_000, rules), 5_000_000, rules);
    const running = begun(waiting, lease!, 5_100_000, rules);
    expect(aged(waiting, 5_400_000, rules)).toMatchObject({ kind: 'half-open', leases: [] });
    expect(aged(running, 5_499_999, rules)).toBe(running);
    expect(aged(running, 5_500_000, rules)).toMatchObject({ kind: 'open', epoch: 3 });
  });
});

/** Steps of a breaker's history, in any order and at any pace. */
type Step =
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'ask' }
  | { readonly do: 'begin' | 'end'; readonly pick: number; readonly outcome: CallOutcome };

const outcomes = fc.constantFrom<CallOutcome>('success', 'failure', 'neutral');
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 0, max: 7000 }) }),
    fc.record({ do: fc.constant('ask' as const) }),
    fc.record({
      do: fc.constantFrom('begin' as const, 'end' as const),
      pick: fc.nat(50),
      outcome: outcomes,
    }),
  ),
  { maxLength: 80 },
);
const anyRules = fc.record({
  probes: fc.integer({ min: 1, max: 4 }),
  successes: fc.integer({ min: 1, max: 4 }),
  jitter: fc.nat(100).map((n) => () => n / 100),
});

class History {
  now = 0;
  state: BreakerState;
  readonly leases: Lease[] = [];

  constructor(readonly rules: BreakerRules) {
    this.state = opened(1, 0, rules);
  }

  take(step: Step): void {
    if (step.do === 'wait') this.now += step.ms * 1000;
    else if (step.do === 'ask') {
      const [state, lease] = ask(this.state, this.now, this.rules);
      this.state = state;
      if (lease !== undefined) this.leases.push(lease);
    } else if (this.leases.length > 0) {
      const lease = this.leases[step.pick % this.leases.length]!;
      this.state =
        step.do === 'begin'
          ? begun(this.state, lease, this.now, this.rules)
          : reported(this.state, lease, step.outcome, this.now, this.rules);
    }
  }
}

describe('whatever happens to a breaker', () => {
  const inAnyHistory = (check: (history: History, before: BreakerState, step: Step) => void) =>
    fc.assert(
      fc.property(anyRules, steps, (over, all) => {
        const history = new History(rulesOf(over));
        for (const step of all) {
          const before = history.state;
          history.take(step);
          check(history, before, step);
        }
      }),
      { numRuns: 300 },
    );

  it('no more probes are under way than may', () => {
    inAnyHistory(({ state, rules }) => {
      const leases = state.kind === 'half-open' ? state.leases.length : 0;
      expect(leases).toBeLessThanOrEqual(rules.probes);
    });
  });

  it('late results of another epoch, and of leases that ran out, never count', () => {
    inAnyHistory(({ state, leases }, before, step) => {
      if (step.do !== 'end' || leases.length === 0) return;
      const lease = leases[step.pick % leases.length]!;
      if (!isHeld(before, lease)) expect(state).toBe(before);
    });
  });

  it('an epoch begins with each new state and never ends twice', () => {
    inAnyHistory(({ state }, before) => {
      expect(state.epoch).toBeGreaterThanOrEqual(before.epoch);
      if (state.kind !== before.kind) expect(state.epoch).toBeGreaterThan(before.epoch);
    });
  });

  it('it is never wedged: with a healthy resource it closes in bounded time', () => {
    fc.assert(
      fc.property(anyRules, steps, (over, all) => {
        const history = new History(rulesOf(over));
        for (const step of all) history.take(step);
        const { rules } = history;
        // Leases without a report run out, then the longest open time passes.
        history.take({ do: 'wait', ms: rules.leaseMicros / 1000 });
        history.take({ do: 'ask' });
        history.take({ do: 'wait', ms: 1.2 * (rules.openMicros / 1000) });
        for (let n = 0; n < 2 * rules.successes + rules.probes; n++) {
          const known = history.leases.length;
          history.take({ do: 'ask' });
          if (history.leases.length === known) continue;
          history.take({ do: 'end', pick: known, outcome: 'success' });
        }
        expect(history.state.kind).toBe('closed');
      }),
      { numRuns: 300 },
    );
  });

  it('closed, it counts nothing and hands out one permit', () => {
    const state = closed(7);
    expect(aged(state, 1e12, rulesOf())).toBe(state);
    expect(leaseOf(state, 0, rulesOf())).toBeUndefined();
    expect(state).toMatchObject({ permit: { epoch: 7, probe: 0 } });
  });
});
