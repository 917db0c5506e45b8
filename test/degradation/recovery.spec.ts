import { Machine } from './machine.js';

describe('a resource', () => {
  it('is degraded from half of at least 20 calls on (V-E24)', () => {
    const few = new Machine();
    few.calls(19, 'failure');
    expect(few.where).toBe('normal');
    const nine = new Machine();
    nine.calls(11);
    nine.calls(9, 'failure');
    expect(nine.where).toBe('normal');
    const ten = new Machine();
    ten.calls(10);
    ten.calls(10, 'failure');
    expect(ten.where).toBe('degraded');
    expect(ten.changes).toEqual([
      expect.objectContaining({ from: 'normal', to: 'degraded', cause: 'errors', percent: 0 }),
    ]);
  });

  it('is degraded whatever the order of its failures', () => {
    const machine = new Machine();
    machine.calls(10, 'failure');
    machine.calls(9);
    expect(machine.where).toBe('normal');
    machine.call();
    expect(machine.where).toBe('degraded');
  });

  it('forgets what is older than its window', () => {
    const machine = new Machine();
    machine.calls(19, 'failure');
    machine.clock.advance(11_000);
    machine.call('failure');
    expect(machine.where).toBe('normal');
    for (let i = 0; i < 9; i++) machine.call('failure');
    machine.clock.advance(5000);
    machine.calls(9, 'failure');
    expect(machine.where).toBe('normal');
    machine.call('failure');
    expect(machine.where).toBe('degraded');
  });

  it('is degraded by slow calls, where it is told what slow is', () => {
    const machine = new Machine({ options: { slow: '200ms' } });
    for (let i = 0; i < 40; i++) machine.call('success', 200);
    expect(machine.where).toBe('normal');
    for (let i = 0; i < 40; i++) machine.call('success', 201);
    expect(machine.where).toBe('degraded');
    expect(machine.recovery.stats()).toMatchObject({ cause: 'slow', trips: { slow: 1 } });
    machine.clock.advance(10_000);
    const slowProbe = machine.recovery.admit();
    machine.recovery.settled(slowProbe, 'success', 201);
    expect(machine.recovery.stats()).toMatchObject({
      probes: { begun: 1, failed: 1 },
      // It has not risen yet: a probe that fails is no second fall.
      trips: { slow: 1, relapse: 0 },
    });
  });

  it('does not count calls that say nothing about it', () => {
    const machine = new Machine();
    machine.calls(1000, 'neutral');
    machine.calls(19, 'failure');
    expect(machine.where).toBe('normal');
  });

  it.each(['breaker', 'overload', 'operator'] as const)('is degraded by %s at once', (cause) => {
    const machine = new Machine();
    machine.recovery.trip(cause);
    expect(machine.call()).toBe('degraded');
    expect(machine.recovery.stats()).toMatchObject({ cause, trips: { [cause]: 1 } });
  });

  it('begins to recover after three probes in a row, not after three in all (V-E33)', () => {
    const machine = new Machine().breakDown();
    for (const outcome of ['success', 'success', 'failure', 'success', 'success'] as const) {
      machine.clock.advance(10_000);
      machine.probe(outcome);
      expect(['degraded', 'probing']).toContain(machine.where);
    }
    machine.clock.advance(10_000);
    machine.probe('success');
    expect(machine.where).toBe('ramp 10');
  });

  it('is back at 10 % after 30 s, 30 % after 40, 50 % after 50, 100 % after 60 (V-E34)', () => {
    const machine = new Machine().breakDown();
    const seen: string[] = [];
    for (let second = 1; second <= 70; second++) {
      machine.clock.advance(1000);
      const before = machine.where;
      for (let i = 0; i < 100; i++) machine.call();
      if (machine.where !== before) seen.push(`${machine.where} @${second}`);
    }
    expect(seen).toEqual([
      'probing @10',
      'ramp 10 @30',
      'ramp 30 @40',
      'ramp 50 @50',
      'ramp 100 @60',
      'normal @70',
    ]);
    // The request that finds the stage over is the first of the next.
    expect(machine.recovery.stats()).toMatchObject({
      recovered: 1,
      stages: [
        { percent: 10, entered: 1 },
        { percent: 30, entered: 1 },
        { percent: 50, entered: 1 },
        { percent: 100, entered: 1, held: 0 },
      ],
    });
  });

  it('falls to 0 % at once when it fails at 50 %, and needs three new successes (V-E35)', () => {
    const machine = new Machine().toRamp();
    for (let i = 0; i < 2; i++) {
      machine.calls(300);
      machine.clock.advance(10_000);
      machine.call();
    }
    expect(machine.where).toBe('ramp 50');
    machine.calls(4, 'failure');
    expect(machine.where).toBe('degraded');
    expect(new Set(machine.calls(1000))).toEqual(new Set(['degraded']));
    for (let i = 0; i < 3; i++) {
      expect(machine.where).not.toContain('ramp');
      machine.clock.advance(10_000);
      machine.probe('success');
    }
    expect(machine.where).toBe('ramp 10');
    expect(machine.recovery.stats().trips).toMatchObject({ errors: 1, relapse: 1 });
  });

  it('lets exactly the percentage of a stage through, at any volume (V-E36)', () => {
    const machine = new Machine({ options: { minSamples: 1_000_000 } }).toRamp();
    const kinds = machine.calls(10_000);
    expect(kinds.filter((kind) => kind === 'ramped')).toHaveLength(1000);
    for (let from = 0; from < 10_000; from += 10) {
      const ten = kinds.slice(from, from + 10);
      expect(ten.filter((kind) => kind === 'ramped')).toHaveLength(1);
    }
    expect(machine.recovery.stats().stages).toEqual([
      { percent: 10, entered: 1, admitted: 1000, held: 9000 },
    ]);
  });

  it('gets through a stage with few calls as well, only later', () => {
    const machine = new Machine().toRamp();
    machine.call();
    machine.seconds(59, 'neutral');
    expect(machine.where).toBe('ramp 10');
    machine.seconds(1);
    expect(machine.where).toBe('ramp 30');
  });

  it('decides without making anything while all is well, and while nothing is', () => {
    const { recovery } = new Machine();
    expect(recovery.admit()).toBe(recovery.admit());
    recovery.trip('breaker');
    expect(recovery.admit()).toBe(recovery.admit());
    recovery.force(2);
    expect(recovery.admit()).toBe(recovery.admit());
  });

  it('is as the operator says until he says otherwise', () => {
    const { recovery, clock } = new Machine();
    recovery.force(3);
    expect(recovery.admit()).toMatchObject({ kind: 'degraded', level: 3, reason: 'forced' });
    clock.advance(1e6);
    expect(recovery.admit().kind).toBe('degraded');
    recovery.force();
    expect(recovery.admit().level).toBeUndefined();
    recovery.disable();
    for (let i = 0; i < 100; i++) recovery.settled(recovery.admit(), 'failure', 1);
    expect(recovery.phase).toBe('disabled');
    recovery.resume();
    expect(recovery.phase).toBe('normal');
    recovery.force();
    recovery.resume();
    expect(recovery.phase).toBe('degraded');
    expect(recovery.admit().kind).toBe('probe');
  });

  it('observed, runs every request and shows what it would have held', () => {
    const machine = new Machine();
    machine.recovery.observe();
    machine.breakDown();
    expect(machine.recovery.stats()).toMatchObject({ phase: 'degraded', observing: true });
    expect(machine.calls(100)).not.toContain('degraded');
    expect(machine.recovery.stats().held).toBe(100);
    for (let second = 0; second < 80; second++) {
      machine.clock.advance(1000);
      expect(machine.calls(100)).not.toContain('degraded');
    }
    expect(machine.where).toBe('normal');
    expect(machine.recovery.stats()).toMatchObject({ recovered: 1, observing: true });
    expect(machine.changes.every(({ observing }) => observing)).toBe(true);
  });
});
