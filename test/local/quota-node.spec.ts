import { now } from '../support/limiters.js';
import { settle } from '../support/manual-clock.js';
import { Stand } from '../support/quota-stand.js';

describe('a node with a fixed reserve', () => {
  it('A-58, BUG-A27, BUG-A30: starts with 1000, refills 800 at 200, and reports after 100 ms', () => {
    const stand = new Stand({ reserveTarget: 1000 });
    now(stand.take());
    expect(stand.app.tokens).toBe(1000);
    // V-A31: at 201 nothing happens, at 200 the refill goes out.
    for (let i = 0; i < 799; i++) now(stand.take());
    expect([stand.app.tokens, stand.calls.length]).toEqual([201, 1]);
    now(stand.take());
    // V-A32: it asks for 800, and has 1000 again.
    expect(stand.calls[1]?.apps[0]).toMatchObject({ used: 800, want: 800 });
    expect(stand.app.tokens).toBe(1000);
    now(stand.take(5));
    stand.clock.advance(99);
    expect(stand.calls).toHaveLength(2);
    stand.clock.advance(1);
    expect(stand.calls[2]?.apps[0]).toMatchObject({ used: 5 });
  });

  it('V-A29: takes a request’s cost', () => {
    const stand = new Stand({ reserveTarget: 1000 });
    now(stand.take(2));
    now(stand.take(6));
    expect(stand.app.tokens).toBe(994);
  });

  it('V-A37, Y05, BUG-A36: with nothing to say it says nothing', () => {
    const stand = new Stand({ reserveTarget: 1000 });
    stand.clock.advance(10_000);
    expect(stand.calls).toHaveLength(0);
  });

  it('V-A33, BUG-A29: a hundred at once with too few tokens are one call on its way', async () => {
    const stand = new Stand({ reserveTarget: 1000 });
    stand.store = 'by hand';
    const outcomes = Array.from({ length: 100 }, () => stand.take());
    expect(stand.calls).toHaveLength(1);
    stand.release();
    await settle();
    expect(stand.calls).toHaveLength(2);
    stand.release();
    for (const outcome of outcomes) expect((await outcome).allowed).toBe(true);
    expect(stand.app.tokens).toBeLessThanOrEqual(1000);
  });

  it('V-A40, BUG-A42: a thousand requests cost a hundredth of that in calls', () => {
    const stand = new Stand({ reserveTarget: 1000, guaranteed: 100_000, burst: 100_000 });
    for (let i = 0; i < 10_000; i++) {
      now(stand.take());
      if (i % 10 === 0) stand.clock.advance(1);
    }
    expect(stand.node.remoteCalls).toBeLessThanOrEqual(100);
    expect(stand.node.waited / stand.node.decisions).toBeLessThanOrEqual(0.05);
  });
});

describe('a node that follows demand', () => {
  it('V-A34, BUG-A28: what is here counts: 5 and 23 more are enough for 28', () => {
    const stand = new Stand({ guaranteed: 30, burst: 30, reserveTarget: 5, maxCost: 30 });
    now(stand.take());
    // Thirty in all were there: one was used, five are held here, twenty-four are left.
    expect(stand.app.tokens).toBe(5);
    expect(now(stand.take(28)).allowed).toBe(true);
    expect(stand.calls.at(-1)?.apps[0]?.needs).toEqual([{ cost: 23, count: 1 }]);
  });

  it('V-A34: what is here stays here when the rest does not come', () => {
    const stand = new Stand({ guaranteed: 30, burst: 30, reserveTarget: 5, maxCost: 30 });
    now(stand.take());
    expect(now(stand.take(30))).toMatchObject({ allowed: false, tier: 'app', source: 'store' });
    expect(stand.app.tokens).toBeGreaterThanOrEqual(5);
    expect(stand.app.spend(5, stand.clock.now())).toBe(true);
  });

  it('denies in process between two calls while there is too little', () => {
    const stand = new Stand({ guaranteed: 100, burst: 100 });
    for (let i = 0; i < 300; i++) now(stand.take());
    const calls = stand.calls.length;
    for (let i = 0; i < 1000; i++) {
      expect(now(stand.take())).toMatchObject({ allowed: false, tier: 'app', source: 'local' });
    }
    expect(stand.calls.length - calls).toBe(0);
    expect(stand.modes.at(-1)).toBe('paced');
    stand.clock.advance(50);
    expect(now(stand.take()).allowed).toBe(true);
  });

  it('keeps no stock for one request in ten seconds, and asks for each', () => {
    const stand = new Stand({ guaranteed: 1, burst: 1, maxCost: 1 });
    for (let i = 0; i < 5; i++) {
      expect(now(stand.take())).toMatchObject({ allowed: true, source: 'store' });
      expect(stand.app.tokens).toBe(0);
      stand.clock.advance(10_000);
    }
    expect(stand.node.modeOf(stand.app)).toBe('direct');
  });

  it('gives back within one pace what is more than it needs', () => {
    const stand = new Stand();
    for (let i = 0; i < 500; i++) {
      now(stand.take());
      stand.clock.advanceMicros(100);
    }
    const before = stand.app.tokens;
    stand.clock.advance(1000);
    const returned = stand.calls.reduce((sum, call) => sum + (call.apps[0]?.returned ?? 0), 0);
    expect(before).toBeGreaterThan(0);
    expect(returned).toBeGreaterThan(0);
    expect(stand.app.tokens).toBeLessThan(before);
  });

  it('uses no token after its time, counted from before the call was sent', async () => {
    const stand = new Stand({ reserveTarget: 100 });
    stand.store = 'by hand';
    const first = stand.take();
    stand.clock.advance(15);
    stand.release();
    await first;
    await settle();
    stand.store = 'times out';
    // 15 ms of the second were over when the lease arrived.
    stand.clock.jump(984_000);
    expect(stand.app.spend(1, stand.clock.now())).toBe(true);
    stand.clock.jump(1000);
    expect(stand.app.spend(1, stand.clock.now())).toBe(false);
  });

  it('gives everything back when it leaves', async () => {
    const stand = new Stand({ reserveTarget: 100 });
    now(stand.take(3));
    await stand.node.leave();
    expect(stand.calls.at(-1)).toMatchObject({ leaving: true, apps: [{ used: 0, returned: 100 }] });
    expect(stand.ledger.peek()?.cluster.outstanding).toBe(0);
  });
});

const NOTHING_TO_SAY = { app: 0, used: 0, returned: 0, demand: 0, want: 0, needs: [] };

describe('a node whose store fails', () => {
  it('waits no longer than the deadline; what was granted too late pays for what passed by share', async () => {
    const stand = new Stand({ guaranteed: 10, burst: 10, maxCost: 10 });
    stand.store = 'by hand';
    const outcome = stand.take(10);
    stand.clock.advance(20);
    expect(await outcome).toMatchObject({ allowed: true, source: 'fallback' });
    stand.release();
    await settle();
    stand.store = 'at once';
    stand.clock.advance(60);
    expect(stand.ledger.peek()!.apps[0]).toMatchObject({ used: 10 });
    for (const { apps } of stand.calls) {
      expect(apps[0]).not.toHaveProperty('late');
      expect(apps[0]).not.toHaveProperty('owed');
    }
  });

  it('gives back what was granted too late to a request that was refused', async () => {
    const stand = new Stand({ guaranteed: 10, burst: 10, maxCost: 10 });
    stand.app.offline.charge(Infinity, stand.clock.now());
    stand.store = 'by hand';
    const outcome = stand.take(10);
    stand.clock.advance(20);
    expect(await outcome).toMatchObject({ allowed: false, source: 'fallback' });
    const takenMicros = Math.floor(stand.clock.now());
    stand.release();
    await settle();
    expect(stand.ledger.peek()!.apps[0]).toMatchObject({ used: 10 });
    stand.store = 'at once';
    stand.clock.advance(60);
    expect(stand.calls.at(-1)!.apps[0]).toMatchObject({ late: { tokens: 10, takenMicros } });
    expect(stand.ledger.peek()!.apps[0]).toMatchObject({ used: 0 });
  });

  it('owes what passed by share and was denied too late', async () => {
    const stand = new Stand({ guaranteed: 10, burst: 10, maxCost: 10 });
    now(stand.take(10));
    stand.clock.advance(1100);
    stand.ledger.settle(stand.clock.now(), {
      ...{ node: 'other', incarnation: '1', seq: 1, seenEpoch: 0, seenSequence: 0, leaving: false },
      apps: [{ ...NOTHING_TO_SAY, needs: [{ cost: 1, count: 100 }] }],
    });
    stand.store = 'by hand';
    const used = stand.ledger.peek()!.apps[0]!.used;
    const outcome = stand.take(9);
    stand.clock.advance(20);
    expect(await outcome).toMatchObject({ allowed: true, source: 'fallback' });
    stand.release();
    await settle();
    stand.store = 'at once';
    stand.clock.advance(60);
    expect(stand.calls.at(-1)!.apps[0]).toMatchObject({ owed: 9 });
    expect(stand.ledger.peek()!.apps[0]).toMatchObject({ used: used + 9 });
  });

  it('owes what passed by share because the call before was late', async () => {
    const stand = new Stand({ guaranteed: 1000, burst: 1000, maxCost: 10 });
    stand.store = 'by hand';
    const first = stand.take(1);
    stand.clock.advance(10);
    const second = stand.take(7);
    stand.clock.advance(20);
    expect([await first, await second]).toMatchObject([{ allowed: true }, { allowed: true }]);
    stand.release();
    await settle();
    stand.store = 'at once';
    stand.clock.advance(60);
    expect(stand.calls.at(-1)!.apps[0]).toMatchObject({ owed: 7 });
    expect(stand.ledger.peek()!.apps[0]).toMatchObject({ used: 8 });
  });

  it('owes what passed while the store was away, also for longer than its lease', async () => {
    const stand = new Stand({ guaranteed: 100, burst: 100, maxCost: 10 });
    now(stand.take());
    stand.store = 'unreachable';
    stand.clock.advance(1100);
    await settle();
    expect(await stand.take(7)).toMatchObject({ allowed: true, source: 'fallback' });
    const calls = stand.calls.length;
    stand.store = 'at once';
    stand.clock.advance(2500);
    const told = stand.calls.slice(calls).map(({ apps }) => apps[0]?.owed ?? 0);
    expect(told.reduce((sum, owed) => sum + owed, 0)).toBe(7);
  });

  it('spends no token that it set aside and that turns out to be void', async () => {
    const stand = new Stand({ guaranteed: 1000, burst: 1000, maxCost: 10, reserveTarget: 4 });
    now(stand.take());
    expect(stand.app.tokens).toBe(4);
    // The store loses everything; another node is the first to notice, and the rate flows again.
    stand.ledger.lose();
    stand.ledger.settle(stand.clock.now(), {
      ...{ node: 'other', incarnation: '1', seq: 1, seenEpoch: 1, seenSequence: 1, leaving: false },
      apps: [NOTHING_TO_SAY],
    });
    stand.clock.advance(30);
    stand.store = 'by hand';
    const outcome = stand.take(10);
    expect(stand.calls.at(-1)!.apps[0]!.needs).toEqual([{ cost: 6, count: 1 }]);
    stand.release();
    await settle();
    expect(stand.calls.at(-1)!.apps[0]).toMatchObject({
      late: { tokens: 6 },
      needs: [{ cost: 10, count: 1 }],
    });
    stand.release();
    expect(await outcome).toMatchObject({ allowed: true, source: 'store' });
    expect(stand.ledger.peek()!.apps[0]!.used).toBe(10);
  });

  it('puts back into its share what passed by share', async () => {
    const stand = new Stand({ guaranteed: 10, burst: 10, maxCost: 10 });
    stand.store = 'unreachable';
    expect(await stand.take(10)).toMatchObject({ allowed: true, source: 'fallback' });
    expect(now(stand.take(10))).toMatchObject({ allowed: false });
    stand.node.giveBack(stand.app, 10, 'fallback');
    expect(now(stand.take(10))).toMatchObject({ allowed: true, source: 'fallback' });
    expect(stand.app.refunded).toBe(0);
  });

  it('whoever waits when a call fails has its share, and is told so', async () => {
    const stand = new Stand({ maxCost: 1 });
    stand.store = 'unreachable';
    expect(await stand.take()).toMatchObject({ allowed: true, source: 'fallback' });
  });

  it('leaves no timer behind when it leaves while a call is on its way', async () => {
    const stand = new Stand();
    stand.store = 'by hand';
    const waiting = stand.take();
    const left = stand.node.leave();
    stand.release();
    await settle();
    stand.release();
    await Promise.all([waiting, left]);
    expect(stand.clock.pending).toBe(0);
  });

  it('V-A38, BUG-A32: sends a call again whose answer was lost, and it counts once', async () => {
    const stand = new Stand({ reserveTarget: 100 });
    now(stand.take(40));
    now(stand.take(7));
    stand.store = 'lost';
    stand.clock.advance(100);
    await settle();
    stand.store = 'at once';
    now(stand.take(5));
    stand.clock.advance(100);
    const [, lost, again] = stand.calls;
    expect(again).toBe(lost);
    stand.clock.advance(200);
    expect(stand.ledger.peek()?.apps[0]?.used).toBe(40 + 7 + 5);
  });

  it('A-43, BUG-A37: runs alone on its share, probes, and comes back', async () => {
    const stand = new Stand({ guaranteed: 1000, burst: 5000, maxCost: 10 });
    stand.store = 'unreachable';
    await stand.take();
    let allowed = 0;
    for (let ms = 0; ms < 1000; ms++) {
      for (let i = 0; i < 3; i++) if (now(stand.take()).allowed) allowed++;
      stand.clock.advance(1);
      await settle();
    }
    // Nine tenths of the guarantee, and what the share holds: those of a second.
    expect(allowed).toBeLessThanOrEqual(1810);
    expect(allowed).toBeGreaterThan(1780);
    expect(stand.modes).toContain('offline');
    expect(stand.calls.length).toBeLessThan(8);
    stand.store = 'at once';
    stand.clock.advance(2500);
    expect(stand.node.modeOf(stand.app)).not.toBe('offline');
    expect(now(stand.take())).toMatchObject({ allowed: true });
  });
});
