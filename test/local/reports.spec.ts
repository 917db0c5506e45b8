import { now } from '../support/limiters.js';
import { settle } from '../support/manual-clock.js';
import { Stand } from '../support/quota-stand.js';

/** A reserve that a thousand requests do not bring down to where it is refilled. */
const DEEP = { reserveTarget: 10_000, guaranteed: 20_000, burst: 80_000, horizonMs: 10 };

/** Tokens that the node has reported as used, call by call. */
function reported(stand: Stand): number[] {
  return stand.calls.slice(1).map(({ apps }) => apps[0]!.used);
}

/** At twenty thousand a second, so that the threshold counts and not two horizons of demand. */
function spend(stand: Stand, tokens: number): void {
  for (let i = 0; i < tokens; i++) {
    stand.clock.advance(0.05);
    now(stand.take());
  }
}

describe('reports', () => {
  it('V-A35: of 999 tokens wait, the thousandth sends them', () => {
    const stand = new Stand(DEEP);
    now(stand.take());
    spend(stand, 999);
    expect(reported(stand)).toEqual([]);
    spend(stand, 1);
    expect(reported(stand)).toEqual([1000]);
  });

  it('V-A36, BUG-A35: one request and then silence is reported after 100 ms', () => {
    const stand = new Stand(DEEP);
    now(stand.take());
    now(stand.take());
    stand.clock.advance(99);
    expect(reported(stand)).toEqual([]);
    stand.clock.advance(2);
    expect(reported(stand)).toEqual([1]);
  });

  it('V-A39, BUG-A31: what is spent while a report is on its way is in the next one', async () => {
    const stand = new Stand(DEEP);
    now(stand.take());
    stand.store = 'by hand';
    spend(stand, 1000);
    spend(stand, 77);
    stand.release();
    await settle();
    stand.store = 'at once';
    stand.clock.advance(150);
    expect(reported(stand)).toEqual([1000, 77]);
    expect(stand.ledger.peek()!.apps[0]!.used).toBe(1 + 1000 + 77);
  });

  it('V-A41: by method, they add up to the whole', () => {
    const { usage } = new Stand().app;
    usage.take(1_000_000);
    for (let i = 0; i < 800; i++) usage.add(2.5, 'GET');
    for (let i = 0; i < 400; i++) usage.add(7.5, 'PUT');
    expect(usage.take(1_100_000)).toEqual({
      cost: 5000,
      count: 1200,
      periodMs: 100,
      methods: [
        { method: 'GET', cost: 2000, count: 800 },
        { method: 'PUT', cost: 3000, count: 400 },
      ],
    });
  });
});

describe('the stock of a node', () => {
  it('BUG-A38: is never below nothing, whatever the costs', () => {
    const stand = new Stand({ guaranteed: 50, burst: 60, maxCost: 7 });
    for (let i = 0; i < 500; i++) {
      stand.clock.advance(i % 9);
      now(stand.take(1 + (i % 7)));
      expect(stand.app.tokens).toBeGreaterThanOrEqual(0);
    }
  });

  it('BUG-A41: follows demand: 50,000 a second are not served out of 1,000', () => {
    const stand = new Stand({ guaranteed: 100_000, burst: 200_000 });
    let waited = 0;
    for (let ms = 0; ms < 1000; ms++) {
      const before = stand.node.waited;
      for (let i = 0; i < 50; i++) expect(now(stand.take()).allowed).toBe(true);
      if (ms > 200) waited += stand.node.waited - before;
      stand.clock.advance(1);
    }
    expect(waited).toBe(0);
    expect(stand.app.tokens + stand.app.used).toBeGreaterThan(1000);
    expect(stand.node.remoteCalls).toBeLessThan(50);
  });

  it('BUG-A43: what costs more than the stock is asked for, and served', () => {
    const stand = new Stand({ guaranteed: 1000, burst: 1000, maxCost: 500 });
    expect(now(stand.take(500))).toMatchObject({ allowed: true, tier: 'app' });
  });
});
