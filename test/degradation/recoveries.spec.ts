import { checkDegradation, type DegradationInput } from '../../lib/degradation/core/options.js';
import { OTHER_RESOURCES, Recoveries } from '../../lib/degradation/core/recoveries.js';
import { type ProbeLease } from '../../lib/stores/probe-lease.js';
import { ManualClock, settle } from '../support/manual-clock.js';

function make(options: DegradationInput = {}, lease?: ProbeLease, clock = new ManualClock()) {
  const settings = { figures: checkDegradation(options), nodeId: 'a', lease, jitter: () => 1 };
  return { clock, recoveries: new Recoveries(settings, clock) };
}

describe('the recoveries of a process', () => {
  it('are found by name, and keep their figures', () => {
    const { recoveries } = make({
      recovery: { minCalls: 5 },
      resources: { slow: { recovery: { minCalls: 2 } } },
    });
    expect(recoveries.of('db')).toBe(recoveries.of('db'));
    const fail = (name: string, times: number): void => {
      for (let i = 0; i < times; i++) {
        recoveries.of(name).settled(recoveries.of(name).admit(), 'failure', 1);
      }
    };
    fail('slow', 2);
    fail('db', 4);
    expect(recoveries.of('slow').phase).toBe('degraded');
    expect(recoveries.of('db').phase).toBe('normal');
    expect(recoveries.names()).toEqual(['slow', 'db']);
    expect(recoveries.stats().map(({ phase }) => phase)).toEqual(['degraded', 'normal']);
  });

  it('are bounded in number: names beyond that share one', () => {
    const { recoveries } = make();
    for (let i = 0; i < 5000; i++) recoveries.of(`user-${i}`);
    expect(recoveries.of('one more')).toBe(recoveries.of(OTHER_RESOURCES));
    expect(recoveries.names().length).toBe(1001);
  });

  it('refuses an empty name', () => {
    const { recoveries } = make();
    expect(() => recoveries.of('')).toThrow('resource: expected a text');
  });

  it('tell of every change, and a listener that throws keeps nobody from hearing', () => {
    const { recoveries } = make();
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const heard: string[] = [];
    recoveries.on('state', () => {
      throw new Error('not now');
    });
    const off = recoveries.on('state', ({ resource, to }) => heard.push(`${resource} ${to}`));
    recoveries.of('db').force();
    off();
    recoveries.of('db').resume();
    expect(heard).toEqual(['db forced']);
    expect(warn).toHaveBeenCalledTimes(2);
    warn.mockRestore();
  });

  it('take new figures without losing their state', () => {
    const { recoveries } = make();
    const db = recoveries.of('db');
    for (let i = 0; i < 19; i++) db.settled(db.admit(), 'failure', 1);
    const commit = recoveries.prepare(checkDegradation({ recovery: { minCalls: 21 } }));
    expect(db.phase).toBe('normal');
    commit();
    db.settled(db.admit(), 'failure', 1);
    expect(db.phase).toBe('normal');
    db.settled(db.admit(), 'failure', 1);
    expect(db.phase).toBe('degraded');
  });

  it('survive a ramp whose stages become fewer under way', () => {
    const { recoveries, clock } = make({ recovery: { minSamples: 1, probeInterval: '1s' } });
    const db = recoveries.of('db');
    db.trip('operator');
    const seconds = (count: number): void => {
      for (let i = 0; i < count; i++) {
        clock.advance(1000);
        const admission = db.admit();
        if (admission.kind !== 'degraded') db.settled(admission, 'success', 1);
      }
    };
    while (db.percent !== 50) seconds(1);
    recoveries.prepare(
      checkDegradation({ recovery: { minSamples: 1, probeInterval: '1s', steps: [20, 100] } }),
    )();
    expect(db.percent).toBe(100);
    seconds(30);
    expect(db.phase).toBe('normal');
  });

  it('are switched by the options, and an operator by hand outlives other changes', () => {
    const { recoveries } = make({ resources: { page: { mode: 'forced', level: 4 } } });
    expect(recoveries.of('page').admit()).toMatchObject({ kind: 'degraded', level: 4 });
    recoveries.of('db').disable();
    recoveries.prepare(
      checkDegradation({
        resources: { page: { mode: 'forced', level: 2 }, cart: { mode: 'observe' } },
      }),
    )();
    expect(recoveries.of('page').admit().level).toBe(2);
    expect(recoveries.of('cart').stats().observing).toBe(true);
    expect(recoveries.of('db').phase).toBe('disabled');
    recoveries.prepare(checkDegradation({}))();
    expect(recoveries.of('page').phase).toBe('degraded');
    expect(recoveries.of('cart').stats().observing).toBe(false);
    expect(recoveries.of('db').phase).toBe('disabled');
  });

  it('share one ticker, and only while one is not well', () => {
    const { recoveries, clock } = make();
    const [a, b] = [recoveries.of('a'), recoveries.of('b')];
    expect(clock.pending).toBe(0);
    a.trip('breaker');
    b.trip('breaker');
    expect(clock.pending).toBe(1);
    a.disable();
    b.force();
    expect(clock.pending).toBe(0);
    b.resume();
    recoveries.close();
    expect(clock.pending).toBe(0);
  });
});

describe('a probe of the user', () => {
  it('is run without any traffic, every ten seconds, and brings the ramp', async () => {
    const { recoveries, clock } = make();
    const at: number[] = [];
    const startMs = clock.now() / 1000;
    const probe = async (): Promise<void> => void at.push(clock.now() / 1000 - startMs);
    const db = recoveries.of('db', { probe });
    db.trip('breaker');
    await clock.advanceAsync(40_000);
    expect(at).toEqual([10_000, 20_000, 30_000]);
    expect([db.phase, db.percent]).toEqual(['ramp', 10]);
  });

  it('spares the callers: none of them is a probe', async () => {
    const { recoveries, clock } = make();
    const db = recoveries.of('db', { probe: () => new Promise(() => {}) });
    db.trip('breaker');
    for (let second = 0; second < 60; second++) {
      await clock.advanceAsync(1000);
      expect(db.admit().kind).toBe('degraded');
    }
  });

  it.each<[string, () => Promise<void>]>([
    ['rejects', () => Promise.reject(new Error('ill'))],
    [
      'throws',
      () => {
        throw new Error('ill');
      },
    ],
    ['hangs', () => new Promise(() => {})],
  ])('that %s is a failure, and the next one comes', async (_name, ill) => {
    const { recoveries, clock } = make();
    let isWell = false;
    const db = recoveries.of('db', { probe: () => (isWell ? Promise.resolve() : ill()) });
    db.trip('breaker');
    await clock.advanceAsync(45_000);
    expect(db.stats().probes.succeeded).toBe(0);
    expect(db.stats().probes.failed).toBeGreaterThanOrEqual(2);
    isWell = true;
    await clock.advanceAsync(50_000);
    expect(db.phase).toBe('ramp');
  });

  it.each([
    [false, 'degraded'],
    [true, 'ramp'],
    [undefined, 'ramp'],
  ])('says by its answer how the resource is: %s, %s (T-45)', async (answer, phase) => {
    const { recoveries, clock } = make();
    const db = recoveries.of('db', { probe: () => Promise.resolve(answer) });
    db.trip('breaker');
    await clock.advanceAsync(50_000);
    expect(db.phase).toBe(phase);
    expect(db.stats().probes.begun).toBeGreaterThanOrEqual(3);
  });

  it('is told by its signal that its time is up, and what it says then is too late', async () => {
    const { recoveries, clock } = make();
    let signal: AbortSignal | undefined;
    let answer = (): void => {};
    const db = recoveries.of('db', {
      probe: (given) => {
        signal = given;
        return new Promise<void>((resolve) => (answer = resolve));
      },
    });
    db.trip('breaker');
    await clock.advanceAsync(14_999);
    expect(signal?.aborted).toBe(false);
    await clock.advanceAsync(1);
    expect(signal?.aborted).toBe(true);
    answer();
    await settle();
    expect(db.stats().probes).toMatchObject({ begun: 1, succeeded: 0, failed: 1 });
  });

  it('is ended when the process stops', async () => {
    const { recoveries, clock } = make();
    let signal: AbortSignal | undefined;
    const db = recoveries.of('db', {
      probe: (given) => {
        signal = given;
        return new Promise(() => {});
      },
    });
    db.trip('breaker');
    await clock.advanceAsync(10_000);
    recoveries.close();
    expect(signal?.aborted).toBe(true);
    expect(clock.pending).toBe(0);
  });
});

/** A lease for several nodes, as a store would keep it; replies late if `isLate` is set. */
class FleetLease {
  holder: string | undefined;
  isLate = false;
  readonly asked: string[] = [];

  for(node: string): ProbeLease {
    return {
      tryHold: () => {
        this.asked.push(node);
        const held = this.holder === undefined;
        if (held) this.holder = node;
        return this.isLate ? Promise.resolve(held) : held;
      },
      release: () => {
        if (this.holder === node) this.holder = undefined;
      },
    };
  }
}

describe('the turn to probe', () => {
  it.each([false, true])('is one node’s at a time (lease answers late: %s)', async (isLate) => {
    const lease = new FleetLease();
    lease.isLate = isLate;
    const clock = new ManualClock();
    const nodes = ['a', 'b', 'c'].map((node) =>
      make({}, lease.for(node), clock).recoveries.of('db'),
    );
    let probing = 0;
    let most = 0;
    for (const node of nodes) node.trip('breaker');
    for (let tick = 0; tick < 4000; tick++) {
      await clock.advanceAsync(50);
      for (const node of nodes) {
        const admission = node.admit();
        if (admission.kind === 'degraded') continue;
        if (admission.kind === 'probe') most = Math.max(most, ++probing);
        clock.after(200, () => {
          if (admission.kind === 'probe') probing--;
          node.settled(admission, 'success', 200);
        });
      }
    }
    expect(most).toBe(1);
    expect(nodes.map(({ phase }) => phase)).toEqual(['normal', 'normal', 'normal']);
    expect(nodes.some((node) => node.stats().probes.refused > 0)).toBe(true);
    expect(lease.holder).toBeUndefined();
  });

  it.each<[string, ProbeLease]>([
    ['rejects', { tryHold: () => Promise.reject(new Error('away')), release: () => {} }],
    [
      'throws',
      {
        tryHold: () => {
          throw new Error('away');
        },
        release: () => {
          throw new Error('away');
        },
      },
    ],
    ['hangs', { tryHold: () => new Promise(() => {}), release: () => {} }],
  ])('is ours if the lease %s', async (_name, lease) => {
    const { recoveries, clock } = make({}, lease);
    const db = recoveries.of('db', { probe: () => Promise.resolve() });
    db.trip('breaker');
    await clock.advanceAsync(90_000);
    expect(db.phase).toBe('ramp');
  });

  it('is given back when it came too late to be used', async () => {
    let grant = (_held: boolean): void => {};
    let released = 0;
    const lease: ProbeLease = {
      tryHold: () => new Promise((resolve) => (grant = resolve)),
      release: () => released++,
    };
    const { recoveries, clock } = make({}, lease);
    const db = recoveries.of('db');
    db.trip('breaker');
    clock.advance(10_000);
    expect(db.admit().kind).toBe('degraded');
    recoveries.close();
    grant(true);
    await settle();
    expect(released).toBe(1);
  });
});
