import fc from 'fast-check';
import { type CallOutcome } from '../../lib/common/outcome-window.js';
import { type RecoveryAdmission } from '../../lib/degradation/core/contract.js';
import { Machine } from './machine.js';

type Step =
  | { readonly do: 'admit' }
  | { readonly do: 'settle'; readonly which: number; readonly outcome: CallOutcome }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'trip' | 'force' | 'disable' | 'observe' | 'resume' };

const LEASE_MICROS = 10_000_000;

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.constant<Step>({ do: 'admit' }) },
    {
      weight: 8,
      arbitrary: fc.record({
        do: fc.constant('settle' as const),
        which: fc.nat(50),
        outcome: fc.constantFrom<CallOutcome>('success', 'success', 'failure', 'neutral'),
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant('wait' as const),
        ms: fc.oneof(fc.nat(200), fc.nat(15_000), fc.constant(10_000)),
      }),
    },
    { weight: 1, arbitrary: fc.constant<Step>({ do: 'trip' }) },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom('force', 'disable', 'observe', 'resume', 'resume')
        .map((word): Step => ({ do: word as 'force' })),
    },
  ),
  { maxLength: 200 },
);

interface Pending {
  readonly admission: RecoveryAdmission;
  readonly at: number;
}

/** Plays a history, checking what has to hold at every step of it. */
class Play {
  readonly machine = new Machine({ options: { minCalls: 5, minSamples: 3 } });
  private readonly pending: Pending[] = [];

  step(step: Step): void {
    const { recovery, clock } = this.machine;
    switch (step.do) {
      case 'wait':
        return clock.advance(step.ms);
      case 'admit':
        return this.admit();
      case 'settle':
        return this.settle(step.which, step.outcome);
      case 'trip':
        return recovery.trip('overload');
      default:
        return recovery[step.do]();
    }
  }

  private admit(): void {
    const { recovery, clock } = this.machine;
    const admission = recovery.admit();
    const { phase, observing, epoch } = recovery.stats();
    if (phase === 'forced') expect(admission.kind).toBe('degraded');
    if (phase === 'disabled' || phase === 'normal') expect(admission.kind).toBe('normal');
    if (observing) expect(admission.kind).not.toBe('degraded');
    if (admission.kind === 'probe') {
      const others = this.pending.filter(({ admission: other, at }) => {
        const isLive = other.epoch === epoch && clock.now() < at + LEASE_MICROS;
        return other.kind === 'probe' && isLive;
      });
      expect(others).toEqual([]);
    }
    if (admission.kind !== 'degraded') this.pending.push({ admission, at: clock.now() });
  }

  private settle(which: number, outcome: CallOutcome): void {
    if (this.pending.length === 0) return;
    const { recovery } = this.machine;
    const [{ admission }] = this.pending.splice(which % this.pending.length, 1) as [Pending];
    const before = recovery.stats();
    recovery.settled(admission, outcome, 1);
    if (admission.epoch === before.epoch) return;
    const late = before.late + (admission.epoch === 0 ? 0 : 1);
    expect(recovery.stats()).toEqual({ ...before, late });
  }
}

describe('over any history', () => {
  it('there is one permit at most, and late results change nothing', () => {
    fc.assert(
      fc.property(steps, (history) => {
        const play = new Play();
        for (const step of history) play.step(step);
      }),
      { numRuns: 150 },
    );
  });

  it('a resource is never wedged: healthy calls and time bring it back to normal', () => {
    fc.assert(
      fc.property(steps, (history) => {
        const play = new Play();
        for (const step of history) play.step(step);
        const { machine } = play;
        machine.recovery.resume();
        // A lease, three intervals and four stages at most, and the calls in between.
        for (let second = 0; second < 100; second++) {
          machine.clock.advance(1000);
          machine.calls(10);
        }
        expect(machine.where).toBe('normal');
        expect(machine.call()).toBe('normal');
      }),
      { numRuns: 150 },
    );
  });

  it('and even if callers come rarely', () => {
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 20 }), (history, everySeconds) => {
        const play = new Play();
        for (const step of history) play.step(step);
        const { machine } = play;
        machine.recovery.resume();
        let calls = 0;
        while (machine.where !== 'normal' && calls++ < 1000) {
          machine.clock.advance(everySeconds * 1000);
          machine.call();
        }
        expect(machine.where).toBe('normal');
      }),
      { numRuns: 100 },
    );
  });

  it('of n requests in a stage exactly the percentage passes, rounded up', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 99 }),
        fc.integer({ min: 1, max: 2000 }),
        (percent, n) => {
          const machine = new Machine({
            options: { steps: [percent, 100], stageMin: '1d' },
          }).toRamp();
          const passed = machine.calls(n).filter((kind) => kind === 'ramped').length;
          expect(passed).toBe(Math.ceil((n * percent) / 100));
        },
      ),
      { numRuns: 150 },
    );
  });
});
