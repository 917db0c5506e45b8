import { type BreakerOptions } from 'nestjs-weir';
import { Breaker, type BreakerSettings } from '../../lib/protection/breaker.js';
import { type CallOutcome } from '../../lib/common/outcome-window.js';
import { compileResource } from '../../lib/protection/resource-options.js';

/** A breaker with a clock of its own, and the changes it has emitted. */
class Subject {
  nowMs = 0;
  readonly told: string[] = [];
  readonly breaker: Breaker;

  constructor(options: Partial<BreakerOptions> = {}) {
    const { breaker } = compileResource('db', { breaker: options }, 'seed');
    const settings: BreakerSettings = { ...breaker!, jitter: () => 0.5 };
    this.breaker = new Breaker(settings, (from, to) => this.told.push(`${from} → ${to}`));
  }

  get now(): number {
    return this.nowMs * 1000;
  }

  /** A call that takes no time. False if it was not let through. */
  call(outcome: CallOutcome, slow = false): boolean {
    const permit = this.breaker.admit(this.now);
    if (permit === undefined) return false;
    this.breaker.begin(permit, this.now);
    this.breaker.report(permit, outcome, slow, this.now);
    return true;
  }

  calls(count: number, outcome: CallOutcome, slow = false): void {
    for (let n = 0; n < count; n++) this.call(outcome, slow);
  }
}

describe('a breaker', () => {
  it('opens at half of twenty calls, and not at less or fewer', () => {
    const subject = new Subject();
    subject.calls(9, 'success');
    subject.calls(10, 'failure');
    expect(subject.breaker.kind).toBe('closed');
    subject.call('success');
    expect(subject.breaker.kind).toBe('open');
    expect(subject.told).toEqual(['closed → open']);

    const patient = new Subject();
    patient.calls(11, 'success');
    patient.calls(10, 'failure');
    expect(patient.breaker.kind).toBe('closed');
  });

  it('opens by slow calls as by failures', () => {
    const subject = new Subject({ slowCall: 100 });
    subject.calls(10, 'success');
    subject.calls(9, 'success', true);
    expect(subject.breaker.kind).toBe('closed');
    subject.call('success', true);
    expect(subject.breaker.kind).toBe('open');
  });

  it('forgets what is older than its window', () => {
    const subject = new Subject();
    subject.calls(19, 'failure');
    subject.nowMs = 11_000;
    subject.calls(19, 'failure');
    expect(subject.breaker.kind).toBe('closed');
    subject.call('failure');
    expect(subject.breaker.kind).toBe('open');
  });

  it('by count forgets the oldest call, whenever that was', () => {
    const subject = new Subject({ window: { calls: 4 }, minimumCalls: 4, errorRate: 0.75 });
    for (const outcome of ['failure', 'success', 'success', 'failure', 'failure'] as const) {
      subject.call(outcome);
      subject.nowMs += 1e6;
    }
    expect(subject.breaker.kind).toBe('closed');
    subject.call('failure');
    expect(subject.breaker.counts).toEqual({ calls: 0, failures: 0, slow: 0 });
    expect(subject.breaker.kind).toBe('open');
  });

  it('does not count neutral calls at all', () => {
    const subject = new Subject({ minimumCalls: 2 });
    subject.calls(100, 'neutral');
    subject.call('failure');
    expect(subject.breaker.counts).toEqual({ calls: 1, failures: 1, slow: 0 });
    expect(subject.breaker.kind).toBe('closed');
  });

  it('says when to come back', () => {
    const subject = new Subject();
    subject.calls(20, 'failure');
    subject.nowMs = 1200;
    expect(subject.breaker.admit(subject.now)).toBeUndefined();
    expect(subject.breaker.retryAfterMs(subject.now)).toBe(3800);
  });

  it('takes a slow probe for a failed one', () => {
    const subject = new Subject();
    subject.calls(20, 'failure');
    subject.nowMs = 5000;
    expect(subject.call('success', true)).toBe(true);
    expect(subject.told).toEqual(['closed → open', 'open → half-open', 'half-open → open']);
  });

  describe('of an operator', () => {
    it('forced, lets nothing through', () => {
      const subject = new Subject({ mode: 'forced' });
      expect(subject.call('success')).toBe(false);
      expect(subject.breaker.retryAfterMs(0)).toBe(5000);
      subject.breaker.switchTo('auto');
      expect(subject.call('success')).toBe(true);
      expect(subject.told).toEqual(['open → closed']);
    });

    it('disabled, lets everything through and counts nothing', () => {
      const subject = new Subject({ mode: 'disabled' });
      subject.calls(100, 'failure');
      expect(subject.call('failure')).toBe(true);
      expect(subject.breaker.counts.calls).toBe(0);
    });

    it('observed, says what it would do and lets everything through', () => {
      const subject = new Subject({ mode: 'observe' });
      subject.calls(20, 'failure');
      expect(subject.breaker.kind).toBe('open');
      expect(subject.call('success')).toBe(true);
      expect(subject.breaker.observed).toBe(1);
      subject.nowMs = 5000;
      subject.calls(3, 'success');
      expect(subject.told).toEqual(['closed → open', 'open → half-open', 'half-open → closed']);
    });

    it('does not count calls that were begun under another mode', () => {
      const subject = new Subject({ minimumCalls: 1 });
      const permit = subject.breaker.admit(0)!;
      subject.breaker.switchTo('observe');
      subject.breaker.report(permit, 'failure', false, 0);
      expect(subject.breaker.kind).toBe('closed');
    });
  });
});
