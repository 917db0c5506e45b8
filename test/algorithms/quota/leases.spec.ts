import { Till } from '../../support/quota-calls.js';
import { figures } from '../../support/quota-histories.js';

const CLUSTER = { capacity: 10_000 };
const APP = { guaranteed: 1000, burst: 5000 };

/** All buckets of an app and of the cluster, in tokens. */
function buckets(till: Till): Record<string, number> {
  const { apps, cluster } = till.ledger.peek()!;
  const { stock, credit, room, share } = apps[0]!;
  const units = { stock, credit, room, share, level: cluster.level };
  return Object.fromEntries(Object.entries(units).map(([name, level]) => [name, level / 1e6]));
}

describe('what a node gives back', () => {
  it.each([
    ['credit', { ...APP, elastic: false }, 0],
    ['idle capacity', { ...APP, elastic: true }, 0],
    ['a share of it during overload', { ...APP, elastic: true }, 20_000],
  ])('goes into the very buckets that it came from, with %s', (_name, app, demand) => {
    const till = new Till(figures([app], CLUSTER));
    till.ask(0, { demand });
    till.ask(100, { demand });
    const before = buckets(till);
    const held = till.want(100, 500, { demand });
    expect(held).toBeGreaterThan(100);
    expect(buckets(till)).not.toEqual(before);
    till.ask(100, { demand, returned: held });
    expect(buckets(till)).toEqual(before);
  });

  it('is what was lent, first; what it used is what is guaranteed, first', () => {
    const till = new Till(figures([APP], CLUSTER));
    till.want(0, 300);
    till.ask(0, { used: 100, returned: 200 });
    // A hundred were guaranteed, and are used; two hundred came from the credit, and are back.
    expect(buckets(till)).toMatchObject({ stock: 0, credit: 4000, room: 4900, level: 1900 });
  });

  it('is no more than it holds', () => {
    const till = new Till(figures([APP], CLUSTER));
    till.want(0, 10);
    till.ask(0, { used: 8, returned: 5000 });
    expect(buckets(till)).toMatchObject({ stock: 92, credit: 4000, level: 1992 });
  });

  it('takes no more off what was granted than that was, though uses from before a loss came back first', () => {
    const till = new Till(figures([APP], CLUSTER));
    till.want(0, 10);
    till.ask(0, { refunded: 10 });
    till.ask(0, { returned: 10 });
    expect(till.ledger.peek()!.apps[0]).toMatchObject({ granted: 0, outstanding: 0 });
  });
});

describe('a node that leaves', () => {
  it('is not counted any more, nor is its demand, and what it kept is destroyed', () => {
    const till = new Till(figures([APP], CLUSTER));
    till.call(0, 'stays', { demand: 10 });
    till.call(0, 'leaves', { demand: 9000, want: 50 });
    till.leave(1, 'leaves', { returned: 20 });
    expect(till.call(2, 'stays', { demand: 10 })).toMatchObject({ nodes: 1, apps: [{ nodes: 1 }] });
    expect(till.ledger.peek()!.apps[0]).toMatchObject({ demand: 10, outstanding: 0 });
  });

  it('and one that falls silent, when its lease is over', () => {
    const till = new Till(figures([APP], CLUSTER));
    till.call(0, 'silent', { demand: 9000, want: 50 });
    till.call(999, 'stays', { demand: 10 });
    expect(till.ledger.peek()!.apps[0]).toMatchObject({ demand: 9010, nodes: 2 });
    till.call(1000, 'stays', { demand: 10 });
    expect(till.ledger.peek()!.apps[0]).toMatchObject({ demand: 10, nodes: 1, outstanding: 0 });
  });
});

describe('leases', () => {
  it('of one node are its part of the nodes, or of the demand', () => {
    const given = figures([{ ...APP, elastic: true }], CLUSTER);
    const held = [0, 9000].map((demand) => {
      const till = new Till(given);
      for (const node of ['b', 'c', 'd']) till.call(0, node, { demand: 1000 });
      return till.want(0, 10_000, { demand });
    });
    expect(held).toEqual([250, 750]);
  });

  it('leave room for the guaranteed buckets of all apps, also where requests cost much', () => {
    const app = { guaranteed: 30, burst: 100 };
    const till = new Till(figures([app, app, app], { capacity: 100 }, { maxCost: 28 }));
    till.call(0, 'hoarder', { app: 1, want: 1000 });
    const passed = [1, 2, 0].map((app) => till.need(0, 1, { app, cost: 28 }));
    expect(passed).toEqual([1, 1, 1]);
  });
});

describe('the guarantee', () => {
  it('of 6 a second is 6, although calls do not come when a token is whole', () => {
    const till = new Till(figures([{ guaranteed: 6, burst: 6 }], CLUSTER));
    let passed = 0;
    for (let at = 0; at <= 10_000; at += 50) passed += till.need(at, 10);
    expect(passed).toBeGreaterThanOrEqual(60);
  });
});

describe('during overload', () => {
  const two = figures(
    [
      { guaranteed: 1000, burst: 9000, elastic: true },
      { guaranteed: 1000, burst: 9000, elastic: true },
    ],
    CLUSTER,
  );

  it('a share that was not used for long is not saved up', () => {
    const till = new Till(two);
    const ask = (at: number, count: number): number =>
      till.call(at, 'a', { demand: 9000, count }, { app: 1, demand: 9000 }).apps[0]!.needs[0] ?? 0;
    for (let at = 0; at <= 5000; at += 50) ask(at, 0);
    // A hundred of the guarantee, and two ticks of 4,000 a second.
    expect(ask(5050, 10_000)).toBe(100 + 800);
  });

  it('an elastic app spends no credit: its share is what bounds it', () => {
    const till = new Till(two);
    till.ask(0, { demand: 9500 });
    expect(till.need(100, 500, { demand: 9500 })).toBe(500);
    expect(buckets(till).credit).toBe(8000);
  });

  it('an app that has all of its ceiling is short of that, and only one that has less is short of the cluster', () => {
    const till = new Till(
      figures(
        [
          { guaranteed: 1000, burst: 2000, priority: 0, elastic: true },
          { guaranteed: 1000, burst: 20_000, priority: 1, elastic: true },
        ],
        CLUSTER,
      ),
    );
    const shortages = new Set<string>();
    for (let at = 0; at <= 5000; at += 50) {
      const { apps } = till.call(
        at,
        'a',
        { demand: 6000, count: 300 },
        { app: 1, demand: 20_000, count: 1000 },
      );
      if (at >= 1000) shortages.add(apps.map(({ shortage }) => shortage).join());
    }
    expect([...shortages]).toEqual(['app,cluster']);
  });
});

describe('what a node may hold', () => {
  it('is its part of the demand, and no even part beside nodes that have nearly all of it', () => {
    const till = new Till(figures([APP], CLUSTER));
    till.call(0, 'busy', { demand: 8000 });
    for (const node of ['quiet', 'calm', 'idle']) till.call(0, node, { demand: 80 });
    // Half of a burst of 2,000 may be leased; an even part of that would be 250.
    expect(till.call(1, 'quiet', { demand: 80, want: 500 }).leaseCap).toBe(20);
    expect(till.call(1, 'busy', { demand: 8000, want: 500 }).leaseCap).toBe(971);
  });

  it('is an even part where demand is much the same, or not known yet', () => {
    const till = new Till(figures([APP], CLUSTER));
    till.call(0, 'one', { demand: 500 });
    till.call(0, 'other', { demand: 400 });
    expect(till.call(1, 'other', { demand: 400, want: 500 }).leaseCap).toBe(500);
    expect(till.call(1, 'new', { demand: 0, want: 500 }).leaseCap).toBe(334);
  });
});
