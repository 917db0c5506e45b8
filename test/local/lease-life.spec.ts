import { now } from '../support/limiters.js';
import { settle } from '../support/manual-clock.js';
import { Stand } from '../support/quota-stand.js';

/** Some demand for an app, so that it gets a lease. */
function warmUp(stand: Stand, app = 0): void {
  for (let i = 0; i < 100; i++) now(stand.take(1, stand.apps[app]));
}

describe('a store that has lost its state', () => {
  it('makes the node forget what it held, and not prolong it', () => {
    const stand = new Stand({ reserveTarget: 1000 });
    warmUp(stand);
    expect(stand.app.tokens).toBeGreaterThan(800);
    stand.ledger.lose();
    stand.clock.advance(150);
    // Tokens held under the old state are gone, and those spent of them are not reported again.
    expect(stand.ledger.peek()!.cluster.epoch).toBe(2);
    expect(stand.app.tokens).toBe(stand.outstanding());
    expect(stand.app.used).toBe(0);
  });

  it('does not get tokens that were set aside under the old state', async () => {
    const stand = new Stand({ guaranteed: 100, burst: 100, maxCost: 100 });
    // So few that there is no shortage yet, in which nobody waits.
    for (let i = 0; i < 3; i++) now(stand.take());
    const held = stand.app.tokens;
    expect(held).toBeGreaterThan(0);
    stand.store = 'by hand';
    const waiting = stand.take(100);
    expect(stand.app.tokens).toBe(0);
    stand.ledger.lose();
    stand.release();
    await waiting;
    await settle();
    expect(stand.app.tokens).toBe(stand.outstanding());
  });
});

describe('a lease of several apps', () => {
  it('lives as long as the node calls for any of them', () => {
    const stand = new Stand({ reserveTarget: 1000, apps: ['a', 'b'] });
    warmUp(stand, 1);
    expect(stand.apps[1]!.tokens).toBeGreaterThan(0);
    // Only the other app is used, for longer than a lease lasts.
    for (let i = 0; i < 30; i++) {
      for (let n = 0; n < 300; n++) now(stand.take());
      stand.clock.advance(100);
    }
    expect(now(stand.take(1, stand.apps[1])).source).toBe('local');
    const { tokens, used } = stand.apps[1]!;
    expect(stand.outstanding(1)).toBe(tokens + used);
  });

  it('does not count a node among those of an app that it no longer serves', () => {
    const stand = new Stand({ apps: ['a', 'b'] });
    warmUp(stand, 1);
    expect(stand.ledger.peek()!.apps[1]!.nodes).toBe(1);
    for (let i = 0; i < 60; i++) {
      for (let n = 0; n < 300; n++) now(stand.take());
      stand.clock.advance(100);
    }
    const { nodes, demand, outstanding } = stand.ledger.peek()!.apps[1]!;
    expect({ nodes, demand, outstanding }).toEqual({ nodes: 0, demand: 0, outstanding: 0 });
    expect(stand.ledger.peek()!.apps[0]!.nodes).toBe(1);
  });
});

describe('a fixed reserve', () => {
  it('is held only of apps that this node is asked for, and not for ever', () => {
    const stand = new Stand({ reserveTarget: 1000, apps: ['a', 'b'] });
    warmUp(stand);
    expect(stand.calls.every(({ apps }) => apps.every(({ app }) => app === 0))).toBe(true);
    expect([stand.outstanding(0), stand.outstanding(1)]).toEqual([1000, 0]);
    stand.clock.advance(20_000);
    now(stand.take(1, stand.apps[1]));
    expect([stand.app.tokens, stand.outstanding(0)]).toEqual([0, 0]);
  });
});

describe('a lease that has run out here and not yet in the store', () => {
  it('goes back with the next call', async () => {
    const stand = new Stand({ reserveTarget: 1000 });
    stand.store = 'by hand';
    const first = stand.take();
    // The store settles the call 15 ms after it was sent, so its lease ends 15 ms later.
    stand.clock.advance(15);
    stand.release();
    expect((await first).allowed).toBe(true);
    expect([stand.app.tokens, stand.calls.length]).toEqual([1000, 1]);
    stand.store = 'at once';
    stand.clock.advance(990);
    expect(stand.calls.length).toBe(1);
    now(stand.take());
    expect(stand.calls[1]!.apps[0]).toMatchObject({ used: 0, returned: 1000, want: 1000 });
    expect([stand.app.tokens, stand.outstanding()]).toEqual([1000, 1000]);
  });
});

describe('consumption', () => {
  it('travels about once a second, by method, and is only counted', () => {
    const stand = new Stand({ reserveTarget: 1000 });
    for (let i = 0; i < 10; i++) {
      for (const method of ['GET', 'PUT', undefined]) {
        now(stand.take(2));
        stand.app.usage.add(2, method);
      }
      stand.clock.advance(250);
    }
    const told = stand.calls.flatMap(({ apps }) => apps[0]!.consumption ?? []);
    expect(told.length).toBeGreaterThanOrEqual(2);
    expect(told.length).toBeLessThanOrEqual(3);
    const [total] = stand.ledger.consumption.apps.values();
    expect(total!.count).toBe(told.reduce((sum, { count }) => sum + count, 0));
    expect(total!.methods.get('GET')).toEqual(total!.methods.get('PUT'));
    expect(total!.count).toBe(3 * total!.methods.get('GET')!.count);
  });

  it('of more methods than anybody has is counted as of other ones', () => {
    const { usage } = new Stand().app;
    for (let i = 0; i < 100; i++) usage.add(1, `method ${i}`);
    const { count, methods } = usage.take(1_000_000)!;
    expect([count, methods.length]).toEqual([100, 65]);
    expect(methods.at(-1)).toEqual({ method: '(other)', cost: 36, count: 36 });
    expect(usage.take(2_000_000)).toBeUndefined();
  });
});
