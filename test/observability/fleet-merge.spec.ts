import { LogLinear } from '../../lib/common/histogram.js';
import { FleetMerge } from '../../lib/observability/fleet/merge.js';
import { type NodeSnapshot } from '../../lib/observability/fleet/snapshot.js';
import { type ShownKey } from '../../lib/observability/state.js';
import { series, snapshot } from './snapshots.js';

const SECOND = 1_000_000;

describe('FleetMerge', () => {
  it('adds nodes up by what came since the last look, by its own clock', () => {
    const merge = new FleetMerge(100);
    const inAll = (): number => merge.table.total.minutes.at(0)?.count ?? 0;
    const look = (second: number, counts: Record<string, number>, incarnation = 'i') => {
      merge.begin(5000);
      const before = inAll();
      for (const [node, count] of Object.entries(counts)) {
        merge.add(snapshot(node, [series('total', '', count)], { incarnation }), second * SECOND);
      }
      merge.end((second + 1) * SECOND, 1000);
      return inAll() - before;
    };
    expect(look(1, { a: 1_000_000, b: 50 })).toBe(0);
    expect(look(2, { a: 1_000_100, b: 60 })).toBe(110);
    // A snapshot was lost: nothing of it is.
    expect(look(3, { b: 70 })).toBe(10);
    expect(look(4, { a: 1_000_300, b: 80 })).toBe(210);
    expect(merge.nodes().find(({ node }) => node === 'a')!.rate).toBe(100);
    // Started anew: all that it has counted is new.
    expect(look(5, { a: 7 }, 'j')).toBe(7);
    // Figures that go back count nothing, and never less than nothing.
    expect(look(6, { a: 3 }, 'j')).toBe(0);
  });

  it('has no rates of a fleet whose figures are gone, until all have had the time to write again', () => {
    const merge = new FleetMerge(100);
    const look = (second: number, nodes: readonly string[]): boolean => {
      merge.begin(5000);
      for (const node of ['a', 'b', 'gone']) {
        const own = snapshot(node, [series('total', '', 100 * second)]);
        if (nodes.includes(node)) merge.add(own, second * SECOND);
        else merge.missed(node, second * SECOND);
      }
      return merge.hasRates(second * SECOND);
    };
    const told = [[0, 'a'], [1, 'a'], [2, 'a'], [3, 'a', 'b'], [4, 'a', 'b'], [5, 'a', 'b']] as const; // oxfmt-ignore
    expect(told.map(([second, ...nodes]) => look(second, nodes))).toEqual(Array(6).fill(false));
    // One that has not written by now does not speak.
    expect(look(6, ['a', 'b'])).toBe(true);
    expect(look(7, ['a', 'b'])).toBe(true);
  });

  it('has figures of every second between two looks, and a gap where none came for long', () => {
    const merge = new FleetMerge(100);
    let before = 0;
    // A hundred a second, looked at every five seconds, at uneven times, and once much too late.
    for (const second of [0, 5, 10.1, 14.9, 16.02, 16.99, 18.01, 40, 41]) {
      merge.begin(5000);
      merge.add(snapshot('a', [series('total', '', 100 * second)]), second * SECOND);
      merge.end(second * SECOND, (second - before) * 1000);
      before = second;
    }
    const { seconds } = merge.table.total;
    const rates = seconds
      .last(40 * SECOND, 41)
      .map((slot) => slot && (slot.count * 1000) / slot.spanMs);
    expect(rates.slice(0, 18).map((rate) => Math.round(rate!))).toEqual(Array(18).fill(100));
    expect(rates.slice(19, 40)).toEqual(Array(21).fill(undefined));
    expect(Math.round(rates[40]!)).toBe(100);
  });

  it('has in a second what all nodes do in one, though of one it hears what it did in five', () => {
    const merge = new FleetMerge(100);
    let other = 0;
    for (let second = 0; second < 30; second++) {
      merge.begin(5000);
      merge.add(snapshot('a', [series('total', '', 100 * second)]), second * SECOND);
      if (second % 5 === 2) other = 40 * second;
      merge.add(snapshot('b', [series('total', '', other)]), second * SECOND);
      merge.end(second * SECOND, 1000);
    }
    const { seconds, minutes } = merge.table.total;
    const counts = seconds.last(28 * SECOND, 20).map((slot) => Math.round(slot!.count));
    expect(counts).toEqual(Array(20).fill(140));
    expect(minutes.at(0)!.peak).toBeCloseTo(140);
    expect(minutes.at(0)!.count).toBe(29 * 100 + 27 * 40);
  });

  it('forgets what a node did that has written nothing for longer than it may', () => {
    const merge = new FleetMerge(100);
    const rates: number[] = [];
    for (let second = 0; second < 12; second++) {
      merge.begin(5000);
      const atMs = 1000 * Math.min(second, 3);
      merge.add(snapshot('a', [series('total', '', atMs / 10)], { atMs }), second * SECOND);
      merge.end((second + 1) * SECOND, 1000);
      rates.push(merge.table.total.seconds.at(second)!.count);
    }
    expect(rates).toEqual([0, ...Array<number>(8).fill(100), 0, 0, 0]);
  });

  it.each([
    [180, 20],
    [200, 0],
  ])(
    'shows the tokens of each node evenly, though scarce ones come to one after the other: %d and %d',
    (many, few) => {
      const merge = new FleetMerge(100);
      const used = { a: 0, b: 0 };
      const shares: (number | undefined)[] = [];
      for (let second = 0; second < 40; second++) {
        merge.begin(5000);
        used[second % 2 === 0 ? 'a' : 'b'] += many;
        used[second % 2 === 0 ? 'b' : 'a'] += few;
        for (const node of ['a', 'b'] as const) {
          const counts = { ...series('app', 'x', second).counts, used: used[node] };
          const atMs = 1000 * second;
          merge.add(
            snapshot(node, [series('app', 'x', second, { counts })], { atMs }),
            second * SECOND,
          );
        }
        if (second >= 20) shares.push(...merge.nodes().map((node) => node.apps?.[0]?.used));
      }
      expect(shares).toHaveLength(40);
      // Each has a hundred a second; from one second to the next it is many or few.
      for (const share of shares) expect(Math.abs(share! - 100)).toBeLessThan(25);
    },
  );

  it('shows an app no more on a node that has not used a token of it for a while', () => {
    const merge = new FleetMerge(100);
    const apps: (number | undefined)[] = [];
    for (let second = 0; second < 40; second++) {
      const counts = { ...series('app', 'x', 1).counts, used: 100 * Math.min(second, 10) };
      const atMs = 1000 * second;
      merge.add(snapshot('a', [series('app', 'x', 1, { counts })], { atMs }), second * SECOND);
      apps.push(merge.nodes()[0]!.apps?.[0]?.used);
    }
    expect(apps[10]).toBeCloseTo(100);
    expect(apps[13]).toBeLessThan(60);
    expect(apps[39]).toBeUndefined();
  });

  it('knows the rate of a node that writes less often than it is looked at', () => {
    const merge = new FleetMerge(100);
    const rates: number[] = [];
    for (let second = 0; second <= 24; second++) {
      // A hundred a second, written every five seconds, until it rests at 15 s.
      const count = 100 * Math.min(15, second - (second % 5));
      merge.add(
        snapshot('a', [series('total', '', count), series('app', 'x', count)]),
        second * SECOND,
      );
      rates.push(merge.nodes()[0]!.rate);
    }
    expect(rates.slice(0, 5)).toEqual([0, 0, 0, 0, 0]);
    expect(rates.slice(5, 20)).toEqual(Array.from({ length: 15 }, () => 100));
    expect(rates.slice(21)).toEqual([0, 0, 0, 0]);
  });

  it('has the rate of a node by its own clock, however late its figures are written or read', () => {
    const merge = new FleetMerge(100);
    const rates: number[] = [];
    // A hundred a second; written late by up to a second, and read at uneven times.
    for (const [second, writtenMs] of [
      [0, 0],
      [1, 1900],
      [1.4, 2000],
      [3, 2000],
      [4, 4000],
    ]) {
      const total = [series('total', '', writtenMs! / 10)];
      merge.add(snapshot('a', total, { atMs: writtenMs! }), second! * SECOND);
      rates.push(merge.nodes()[0]!.rate);
    }
    expect(rates.slice(1)).toEqual([100, 100, 100, 100]);
  });

  it('tells a silent node from one that has left, and forgets it after ten minutes', () => {
    const merge = new FleetMerge(100);
    merge.add(snapshot('a', []), 0);
    merge.add(snapshot('b', []), 0);
    expect(merge.missed('a', SECOND)).toBe(false);
    expect(merge.nodes().map(({ node, isSilent }) => [node, isSilent])).toEqual([
      ['a', true],
      ['b', false],
    ]);
    merge.keepOnly(new Set(['a']));
    expect(merge.nodes()).toHaveLength(1);
    expect(merge.missed('a', 602 * SECOND)).toBe(true);
  });

  it('joins the states of its nodes: the worst of them is shown', () => {
    const merge = new FleetMerge(100);
    const db = { resource: 'db', percent: 100, falls: 0 };
    const at = (node: string, more: Partial<NodeSnapshot>) =>
      merge.add(snapshot(node, [], more), SECOND);
    at('a', {
      resources: [{ ...db, breaker: 'closed', phase: 'normal' }],
      modes: [['shop', 'batch']],
      line: { standing: false, waiting: 1 },
    });
    at('b', {
      resources: [{ ...db, breaker: 'open', phase: 'ramp', percent: 30 }],
      modes: [['shop', 'offline']],
      line: { standing: true, waiting: 2 },
      ...{ storeIsUp: false, revision: 3, overloaded: true },
    });
    at('c', { modes: [['shop', 'batch']], denials: [{ app: 'shop', denied: 4, byCluster: 1 }] });
    at('d', { denials: [{ app: 'shop', denied: 3, byCluster: 3 }] });
    expect(merge.condition()).toEqual({
      resources: [{ resource: 'db', breaker: 'open', openNodes: 1, phase: 'ramp', percent: 30 }],
      line: { standing: true, waiting: 3 },
      config: { revision: 4, behind: 1, heard: 4 },
      store: { isUp: true, awayNodes: 1 },
      overloaded: true,
      modes: new Map([['shop', { batch: 2, offline: 1 }]]),
      denials: new Map([['shop', { app: 'shop', denied: 7, byCluster: 4 }]]),
    });
    // And the node whose breaker is open is known by its name, as long as it speaks.
    const open = () => merge.nodes().flatMap((one) => (one.open ? [[one.node, ...one.open]] : []));
    expect(open()).toEqual([['b', 'db']]);
    merge.missed('b', 2 * SECOND);
    expect(merge.condition()).toMatchObject({ overloaded: false, config: { behind: 0, heard: 3 } });
    expect(open()).toEqual([]);
  });

  it('counts and names a node whose breaker tries again as one whose breaker is open', () => {
    const merge = new FleetMerge(100);
    const second = (...breakers: ('open' | 'half-open' | 'closed')[]) => {
      breakers.forEach((breaker, index) => {
        const db = { resource: 'db', percent: 100, falls: 0, phase: undefined, breaker };
        merge.add(snapshot(`api-${index + 1}`, [], { resources: [db] }), SECOND);
      });
      const [{ breaker, openNodes } = {}] = merge.condition().resources;
      const names = merge.nodes().flatMap(({ node, open }) => (open ? [node] : []));
      return [breaker, openNodes, names.join()];
    };
    expect(second('open', 'half-open', 'open')).toEqual(['open', 3, 'api-1,api-2,api-3']);
    expect(second('half-open', 'half-open', 'closed')).toEqual(['half-open', 2, 'api-1,api-2']);
    expect(second('closed', 'closed', 'closed')).toEqual(['closed', 0, '']);
  });

  it('merges times, the keys that are denied most, and the values in demand', () => {
    const merge = new FleetMerge(100);
    const times = new LogLinear();
    const at = (node: string, second: number) => {
      const deniedKeys = [{ policy: 'p', key: 'k', denied: 5 }];
      const hotValues = [{ policy: 'hot', key: node, perPeriod: 7 }];
      hotValues.push({ policy: 'hot', key: 'sku', perPeriod: 4 });
      const own = new LogLinear();
      own.merge(times);
      merge.add(
        snapshot(node, [series('total', '', 1, { times: own })], { deniedKeys, hotValues }),
        second * SECOND,
      );
    };
    for (const node of ['a', 'b']) at(node, 0);
    for (let call = 0; call < 10; call++) times.record(1000);
    for (const node of ['a', 'b']) at(node, 1);
    merge.end(2 * SECOND, 1000);
    expect(merge.table.total.seconds.at(1)).toMatchObject({ timed: 20, p50: 1024 });
    expect(merge.deniedKeys()).toEqual([{ policy: 'p', key: 'k', denied: 10 }]);
    expect(merge.hotValues()).toEqual([
      { policy: 'hot', key: 'sku', perPeriod: 8 },
      { policy: 'hot', key: 'a', perPeriod: 7 },
      { policy: 'hot', key: 'b', perPeriod: 7 },
    ]);
  });

  it('has the source of a denied key from the node that denied it most', () => {
    const sourceOf = (first: ShownKey, second: ShownKey): unknown => {
      const merge = new FleetMerge(100);
      merge.add(snapshot('a', [], { deniedKeys: [first] }), SECOND);
      merge.add(snapshot('b', [], { deniedKeys: [second] }), SECOND);
      return merge.deniedKeys();
    };
    const byShare: ShownKey = { policy: 'p', key: 'k', denied: 7, source: 'fallback' };
    const byStore: ShownKey = { policy: 'p', key: 'k', denied: 5, source: 'store' };
    const both = [{ policy: 'p', key: 'k', denied: 12, source: 'fallback' }];
    expect(sourceOf(byShare, byStore)).toEqual(both);
    expect(sourceOf(byStore, byShare)).toEqual(both);
    expect(sourceOf({ ...byShare, denied: 1 }, byStore)).toMatchObject([{ source: 'store' }]);
  });
});
