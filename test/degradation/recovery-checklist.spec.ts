import { jitterOf } from '../../lib/common/jitter.js';
import { Machine } from './machine.js';

/** The usual mistakes of half-open machines. */
describe('a recovery', () => {
  it('admits one probe, not all traffic: the others get their fallback at once', () => {
    const machine = new Machine().breakDown();
    machine.clock.advance(10_000);
    const kinds = Array.from({ length: 1000 }, () => machine.recovery.admit().kind);
    expect(kinds.filter((kind) => kind === 'probe')).toHaveLength(1);
    expect(kinds.filter((kind) => kind === 'degraded')).toHaveLength(999);
  });

  it('is not wedged by a probe that never settles: its lease ends, counts as failed and frees', () => {
    const machine = new Machine().breakDown();
    machine.clock.advance(10_000);
    const hung = machine.recovery.admit();
    machine.clock.advance(9_999);
    expect(machine.where).toBe('probing');
    machine.clock.advance(1);
    expect(machine.call()).toBe('degraded');
    expect(machine.where).toBe('degraded');
    expect(machine.recovery.stats().probes).toMatchObject({ begun: 1, expired: 1 });
    machine.clock.advance(10_000);
    machine.probe('success');
    machine.recovery.settled(hung, 'failure', 20_000);
    expect(machine.where).toBe('probing');
    expect(machine.recovery.stats().late).toBe(1);
  });

  it('frees the permit of a probe that says nothing, and tries again soon', () => {
    const machine = new Machine().breakDown();
    machine.clock.advance(10_000);
    machine.probe('success');
    machine.clock.advance(10_000);
    machine.probe('neutral');
    machine.clock.advance(1_000);
    machine.probe('success');
    machine.clock.advance(10_000);
    machine.probe('success');
    expect(machine.where).toBe('ramp 10');
    expect(machine.recovery.stats().probes).toMatchObject({ begun: 4, succeeded: 3, neutral: 1 });
  });

  it('does not count late results of an older epoch', () => {
    const machine = new Machine();
    const old = Array.from({ length: 50 }, () => machine.recovery.admit());
    machine.breakDown();
    for (const admission of old.slice(0, 20)) machine.recovery.settled(admission, 'success', 1);
    machine.clock.advance(10_000);
    machine.probe('success');
    for (const admission of old.slice(20)) machine.recovery.settled(admission, 'failure', 1);
    expect(machine.where).toBe('probing');
    expect(machine.recovery.stats()).toMatchObject({ late: 50, epoch: 3 });
  });

  it('has no timer that concurrent failures could cancel', () => {
    const machine = new Machine();
    const calls = Array.from({ length: 100 }, () => machine.recovery.admit());
    for (const admission of calls) machine.recovery.settled(admission, 'failure', 1);
    expect(machine.clock.pending).toBe(0);
    machine.clock.advance(10_000);
    machine.probe('success');
    expect(machine.where).toBe('probing');
  });

  it('does not close after one lucky probe', () => {
    const machine = new Machine().breakDown();
    machine.clock.advance(10_000);
    machine.probe('success');
    expect(new Set(machine.calls(1000))).toEqual(new Set(['degraded']));
  });

  it('does not have all nodes probe in step: a fifth of jitter, the same each time', () => {
    const factors = Array.from({ length: 500 }, (_, i) => jitterOf(`node-${i}/db/2`));
    expect(Math.min(...factors)).toBeGreaterThanOrEqual(0.8);
    expect(Math.max(...factors)).toBeLessThanOrEqual(1.2);
    expect(Math.min(...factors)).toBeLessThan(0.85);
    expect(Math.max(...factors)).toBeGreaterThan(1.15);
    const tenths = new Set(factors.map((factor) => Math.floor((factor - 0.8) * 25)));
    expect(tenths.size).toBeGreaterThanOrEqual(10);
    expect(factors).toEqual(Array.from({ length: 500 }, (_, i) => jitterOf(`node-${i}/db/2`)));
  });
});
