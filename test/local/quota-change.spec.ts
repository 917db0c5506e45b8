import { compileQuota, type QuotaFigures } from '../../lib/algorithms/quota/quota-limits.js';
import { AppTokens } from '../../lib/local/app-tokens.js';
import { type NodeTuning, QuotaNode } from '../../lib/local/quota-node.js';
import { RevisionWatch } from '../../lib/local/lease-calls.js';
import { now } from '../support/limiters.js';
import { ManualClock, settle } from '../support/manual-clock.js';
import { Stand } from '../support/quota-stand.js';

const TUNING: NodeTuning = {
  horizonMicros: 50_000,
  paceMicros: 50_000,
  syncMicros: 100_000,
  batchThreshold: 1000,
  reserveTarget: 0,
  refillThreshold: 0.2,
};
const SAME = {
  guaranteed: 10_000,
  burst: 50_000,
  maxCost: 10,
  fillMicros: 1_000_000,
  storeFillMicros: 1_000_000,
};

function figuresOf(apps: readonly string[], leaseTtlMs = 1000, burst = 50_000): QuotaFigures {
  const one = { burstDurationMs: 60_000, priority: 1, elastic: true };
  return {
    cluster: undefined,
    apps: apps.map((app) => ({ app, guaranteed: 10_000, burst, ...one })),
    maxCost: 10,
    paceMs: 50,
    leaseTtlMs,
    reserveTarget: 0,
  };
}

function warmUp(stand: Stand, app = 0): void {
  for (let i = 0; i < 100; i++) now(stand.take(1, stand.apps[app]));
}

/** The tokens that the app may admit by itself per second. */
function offlinePerSecond(app: AppTokens, at: number): number {
  app.offline.charge(Infinity, at);
  return 9e6 / app.offline.waitMicros(9, at);
}

describe('a node whose quota changes', () => {
  it('gives back what it holds of an app that is gone, and says no more about it', () => {
    const stand = new Stand({ apps: ['a', 'b'] });
    warmUp(stand, 1);
    expect(stand.outstanding(1)).toBeGreaterThan(0);
    stand.apps[1]!.retire(stand.clock.now());
    stand.node.change(TUNING, [], 1);
    stand.ledger.change(stand.clock.now(), compileQuota(figuresOf(['a']), ['a', 'b'], 1));
    stand.clock.advance(30);
    expect(stand.apps[1]!.tokens).toBe(0);
    expect(stand.outstanding(1)).toBe(0);
    for (let i = 0; i < 5; i++) {
      warmUp(stand);
      stand.clock.advance(100);
    }
    expect(stand.ledger.peek()!.apps[1]).toMatchObject({ demand: 0, nodes: 0 });
    expect(stand.calls.at(-1)!.apps.map(({ app }) => app)).toEqual([0]);
  });

  it('has a place for an app that is new, also in the same call', () => {
    const stand = new Stand();
    warmUp(stand);
    const added = new AppTokens(1, 'b', { ...SAME, guaranteed: 0, burst: 0, maxCost: 0 });
    added.change(SAME, stand.clock.now());
    stand.ledger.change(stand.clock.now(), compileQuota(figuresOf(['a', 'b']), ['a', 'b'], 1));
    stand.node.change(TUNING, [added], 1);
    expect(now(stand.node.tryAcquire(added, 3))).toMatchObject({ allowed: true, source: 'store' });
    expect(stand.ledger.peek()!.apps[1]!.used).toBe(3);
  });

  it('plans its stock by the new figures, and gives back what is beyond a smaller one', () => {
    const stand = new Stand({ reserveTarget: 1000 });
    warmUp(stand);
    expect(stand.app.tokens).toBeGreaterThan(800);
    stand.node.change({ ...TUNING, reserveTarget: 50 }, [], 1);
    stand.clock.advance(150);
    expect(stand.app.tokens).toBeLessThanOrEqual(50);
    expect(stand.outstanding()).toBe(stand.app.tokens);
  });

  it('V-A46: a lower burst leaves it a part of its tokens; the rest goes back with the next call', () => {
    const stand = new Stand({ reserveTarget: 1000 });
    warmUp(stand);
    const held = stand.app.tokens;
    stand.ledger.change(stand.clock.now(), compileQuota(figuresOf(['a'], 1000, 20_000), ['a'], 1));
    stand.app.change({ ...SAME, burst: 20_000 }, stand.clock.now());
    stand.node.change({ ...TUNING, reserveTarget: 1000 }, [], 1);
    const kept = Math.floor((held * 20_000) / 50_000);
    expect(stand.app.tokens).toBe(kept);
    stand.clock.advance(30);
    expect(stand.calls.at(-1)!.apps[0]).toMatchObject({ returned: held - kept });
    expect(stand.outstanding()).toBe(stand.app.tokens);
  });

  it('keeps tokens no longer than the ledger does when leases become shorter', () => {
    const stand = new Stand({ reserveTarget: 1000 });
    warmUp(stand);
    const { clock, app } = stand;
    stand.ledger.change(clock.now(), compileQuota(figuresOf(['a'], 200), ['a'], 1));
    clock.advance(100);
    const sentAt = clock.now();
    expect(app.expiresAt - sentAt).toBeLessThanOrEqual(200_000);
    stand.store = 'times out';
    clock.advance(200);
    expect(app.spend(1, clock.now())).toBe(false);
  });

  it('takes a lower share for the time without the store at once, a higher one with its word', async () => {
    const stand = new Stand();
    warmUp(stand);
    const { clock, app } = stand;
    expect(offlinePerSecond(app, clock.now())).toBeCloseTo(9000, -2);
    app.change({ ...SAME, guaranteed: 5000 }, clock.now());
    stand.node.change(TUNING, [], 1);
    expect(offlinePerSecond(app, clock.now())).toBeCloseTo(4500, -2);
    app.change({ ...SAME, guaranteed: 20_000 }, clock.now());
    stand.node.change(TUNING, [], 2);
    stand.store = 'by hand';
    clock.advance(30);
    await settle();
    expect(offlinePerSecond(app, clock.now())).toBeCloseTo(4500, -2);
    stand.ledger.change(clock.now(), compileQuota(figuresOf(['a']), ['a'], 2));
    stand.release();
    await settle();
    expect(offlinePerSecond(app, clock.now())).toBeCloseTo(18_000, -2);
  });

  it('makes no call of its own for the same quota under another revision', () => {
    const stand = new Stand();
    stand.node.follow(1);
    expect(stand.clock.pending).toBe(0);
    warmUp(stand);
    const asked = stand.calls.length;
    stand.node.follow(2);
    stand.clock.advance(30);
    expect(stand.calls).toHaveLength(asked);
    // A node says so with its next call, and the reply says whether it is right.
    stand.ledger.change(stand.clock.now(), compileQuota(figuresOf(['a']), ['a'], 2));
    stand.clock.advance(2000);
    expect(stand.calls.length).toBeGreaterThan(asked);
  });

  it('has the store’s word on a higher share also where it heard of the next revision first', () => {
    const stand = new Stand();
    warmUp(stand);
    const { clock, app, node } = stand;
    stand.ledger.change(clock.now(), compileQuota(figuresOf(['a']), ['a'], 2));
    app.change({ ...SAME, guaranteed: 20_000 }, clock.now());
    node.change(TUNING, [], 1);
    clock.advance(5000);
    expect(clock.pending).toBe(0);
    // It has taken a while to find out that the quota is the same in revision 2.
    node.follow(2);
    clock.advance(100);
    expect(offlinePerSecond(app, clock.now())).toBeCloseTo(18_000, -2);
    clock.advance(5000);
    expect(clock.pending).toBe(0);
  });

  it('asks until the store goes by the new limits, and rests then', () => {
    const stand = new Stand();
    stand.node.change(TUNING, [], 1);
    stand.clock.advance(1000);
    const asked = stand.calls.length;
    expect(asked).toBeGreaterThan(5);
    stand.ledger.change(stand.clock.now(), compileQuota(figuresOf(['a']), ['a'], 1));
    stand.clock.advance(1000);
    expect(stand.calls.length).toBeLessThanOrEqual(asked + 2);
    expect(stand.clock.pending).toBe(0);
  });
});

describe('an app that the store has no limits for', () => {
  /** A store that knows the first app only. */
  function nodeWith(
    clock: ManualClock,
    apps: AppTokens[],
  ): { node: QuotaNode; calls: () => number } {
    const stand = new Stand();
    let calls = 0;
    const store = {
      settle: (call: Parameters<Stand['ledger']['settle']>[1]) => {
        calls++;
        const apps = call.apps.filter(({ app }) => app === 0);
        return Promise.resolve(stand.ledger.settle(clock.now(), { ...call, apps }));
      },
    };
    const settings = { nodeId: 'n', incarnation: '1', decisionTimeoutMs: 20, ...TUNING };
    return { node: new QuotaNode(settings, apps, store, clock, {}, () => 0), calls: () => calls };
  }

  it('has its local share, and costs one call per pace', async () => {
    const clock = new ManualClock();
    const settings = { ...SAME, guaranteed: 1000, burst: 1000, fillMicros: 1 };
    const apps = ['a', 'b'].map((app, index) => new AppTokens(index, app, settings));
    const { node, calls } = nodeWith(clock, apps);
    const first = node.tryAcquire(apps[1]!, 1);
    await settle();
    expect(await first).toMatchObject({ allowed: true, source: 'fallback' });
    const before = calls();
    let allowed = 0;
    for (let i = 0; i < 1000; i++) {
      clock.advance(1);
      const outcome = node.tryAcquire(apps[1]!, 1);
      await settle();
      if ((await outcome).allowed) allowed++;
    }
    // Nine tenths of the guarantee, and what the bucket held.
    expect(allowed).toBeGreaterThan(890);
    expect(allowed).toBeLessThanOrEqual(910);
    expect(calls() - before).toBeLessThanOrEqual(21);
    // The other app is none the worse for it.
    const other = node.tryAcquire(apps[0]!, 1);
    await settle();
    expect(await other).toMatchObject({ allowed: true, source: 'store' });
  });
});

describe('the revision that the store goes by', () => {
  it('is told once when it is later than that of the node', () => {
    const watch = new RevisionWatch();
    expect(watch.compare(0)).toBe('nothing new');
    expect(watch.compare(3)).toBe('overtaken');
    expect(watch.compare(3)).toBe('nothing new');
    expect(watch.compare(2)).toBe('nothing new');
    watch.apply(3);
    expect(watch.compare(3)).toBe('confirmed');
    expect(watch.compare(3)).toBe('nothing new');
    expect(watch.compare(4)).toBe('overtaken');
  });

  it('is not waited for any more once it has been passed', () => {
    const watch = new RevisionWatch();
    watch.apply(3);
    expect([watch.compare(2), watch.isAwaited]).toEqual(['nothing new', true]);
    expect([watch.compare(5), watch.isAwaited]).toEqual(['overtaken', false]);
    watch.apply(4);
    expect([watch.compare(5), watch.isAwaited]).toEqual(['nothing new', false]);
  });
});
