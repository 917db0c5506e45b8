import fc from 'fast-check';
import { LogLinear } from '../../lib/common/histogram.js';
import { Fleet } from '../../lib/observability/fleet/fleet.js';
import { FleetMerge } from '../../lib/observability/fleet/merge.js';
import {
  decodeSnapshot,
  encodeSnapshot,
  type NodeSnapshot,
} from '../../lib/observability/fleet/snapshot.js';
import { MemoryBoard } from '../../lib/stores/memory/memory-board.js';
import { ManualClock } from '../support/manual-clock.js';
import { SharedBoard } from './shared-board.js';
import { nothingElse, series, snapshot } from './snapshots.js';

const SECOND = 1_000_000;
const LONG = `"${'x'.repeat(200)}"`;

describe('a snapshot', () => {
  it('is read as it was written', () => {
    const row = fc.record({
      kind: fc.constantFrom('app', 'policy', 'resource') as fc.Arbitrary<'app'>,
      name: fc.string({ maxLength: 40 }),
      count: fc.nat(),
      micros: fc.array(fc.nat(70_000_000), { maxLength: 20 }),
    });
    fc.assert(
      fc.property(fc.uniqueArray(row, { maxLength: 8, selector: (one) => one.name }), (rows) => {
        const all = rows.map(({ kind, name, count, micros }) => {
          const times = new LogLinear();
          for (const one of micros) times.record(one);
          return series(kind, name, count, micros.length > 0 ? { times } : {});
        });
        const read = decodeSnapshot('n', encodeSnapshot(snapshot('n', all))) as NodeSnapshot;
        const sorted = all.toSorted((a, b) => b.counts.count - a.counts.count);
        expect(read.series.map(({ name, counts }) => [name, counts])).toEqual(
          sorted.map(({ name, counts }) => [name, counts]),
        );
        for (const [index, { times }] of read.series.entries()) {
          expect(times?.cells).toEqual(sorted[index]!.times?.cells);
        }
      }),
    );
  });

  it('has 8 kB at most, whatever a node watches, and loses no count', () => {
    const times = new LogLinear();
    for (let micros = 1; micros < 60_000_000; micros *= 1.1) times.record(micros);
    const all = [series('total', '', 9_000_000, { times })];
    for (let index = 0; index < 100; index++) all.push(series('policy', `policy-${index}`, 1000));
    for (let index = 0; index < 38; index++) {
      all.push(series('resource', `resource-${index}`, 100, { times }));
    }
    const text = encodeSnapshot(snapshot('n', all));
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(8192);
    const read = decodeSnapshot('n', text) as NodeSnapshot;
    const sum = (kind: string) =>
      read.series.filter((one) => one.kind === kind).reduce((s, { counts }) => s + counts.count, 0);
    expect([sum('total'), sum('policy'), sum('resource')]).toEqual([9_000_000, 100_000, 3800]);
  });

  it('has states of resources and apps, those in trouble first if there is no room for all', () => {
    const resources = Array.from({ length: 200 }, (_, index) => ({
      ...{ resource: `resource-${index}`, percent: undefined, falls: index },
      breaker: index === 150 ? ('open' as const) : ('closed' as const),
      phase: index === 170 ? ('degraded' as const) : undefined,
    }));
    const modes = Array.from({ length: 200 }, (_, index) => {
      return [`app-${index}`, index === 190 ? 'offline' : 'batch'] as const;
    });
    const line = { standing: true, waiting: 7 };
    const given = snapshot('n', [], { resources, modes, line, overloaded: true });
    const read = decodeSnapshot('n', encodeSnapshot(given)) as NodeSnapshot;
    expect(read).toMatchObject({ line, overloaded: true, revision: 4, storeIsUp: true });
    expect(read.resources.slice(0, 2)).toEqual([resources[150], resources[170]]);
    expect(read.modes[0]).toEqual(['app-190', 'offline']);
  });

  it('cuts names that are too long, so that the rest of it can be read', () => {
    const key = { policy: 'p', key: 'k'.repeat(500), denied: 1 };
    const long = snapshot('n', [series('policy', 'x'.repeat(200), 1)], { deniedKeys: [key] });
    const read = decodeSnapshot('n', encodeSnapshot(long)) as NodeSnapshot;
    expect(read.series[0]!.name).toBe('x'.repeat(128));
    expect(read.deniedKeys[0]!.key).toBe('k'.repeat(128));
  });

  it.each([
    ['', 'damaged'],
    ['{', 'damaged'],
    ['null', 'damaged'],
    ['[]', 'damaged'],
    [JSON.stringify({ v: 2 }), 'other version'],
    [encodeSnapshot(snapshot('other', [])), 'damaged'],
    [`{"v":1,"node":"n","inc":"i","rev":0,"series":[[9,"x",[]]],"keys":[]}`, 'damaged'],
    [
      `{"v":1,"node":"n","inc":"i","rev":0,"series":[[0,"",[-1,0,0,0,0,0,0,0]]],"keys":[]}`,
      'damaged',
    ],
    [encodeSnapshot(snapshot('n', [series('policy', 'x', 1)])).replace('"x"', LONG), 'damaged'],
    [encodeSnapshot(snapshot('n', [])).replace('"res":[]', '"res":[["r",0,0,"?",1]]'), 'damaged'],
    [encodeSnapshot(snapshot('n', [])).replace('"modes":[]', '"modes":[["a",9]]'), 'damaged'],
    [`{"v":1,"pad":"${'x'.repeat(1_000_000)}"}`, 'damaged'],
  ])('that is none of ours is told apart: %#', (text, why) => {
    expect(decodeSnapshot('n', text)).toBe(why);
  });
});

describe('FleetMerge', () => {
  it('adds nodes up by what came since the last look, by its own clock', () => {
    const merge = new FleetMerge(100);
    const look = (second: number, counts: Record<string, number>, incarnation = 'i') => {
      for (const [node, count] of Object.entries(counts)) {
        merge.add(snapshot(node, [series('total', '', count)], { incarnation }), second * SECOND);
      }
      merge.end(second * SECOND, 1000);
      return merge.table.total.seconds.at(second)!.count;
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

  it('knows how many nodes serve an app, also while nobody asks for it', () => {
    const merge = new FleetMerge(100);
    const look = (second: number) => {
      merge.add(snapshot('a', [series('app', 'shop', 5), series('app', 'idle', 0)]), second);
      merge.add(snapshot('b', [series('app', 'shop', 1)]), second);
      merge.add(snapshot('c', []), second);
    };
    look(0);
    look(60 * SECOND);
    expect(['shop', 'idle', 'other'].map((app) => merge.serving(app))).toEqual([2, 0, 0]);
    merge.missed('b', 80 * SECOND);
    expect(merge.serving('shop')).toBe(1);
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
    at('c', { modes: [['shop', 'batch']] });
    expect(merge.condition()).toEqual({
      resources: [{ resource: 'db', breaker: 'open', openNodes: 1, phase: 'ramp', percent: 30 }],
      line: { standing: true, waiting: 3 },
      config: { revision: 4, behind: 1 },
      store: { isUp: true, awayNodes: 1 },
      overloaded: true,
      modes: new Map([['shop', { batch: 2, offline: 1 }]]),
    });
    merge.missed('b', 2 * SECOND);
    expect(merge.condition()).toMatchObject({ overloaded: false, config: { behind: 0 } });
  });

  it('merges times, the keys that are denied most, and the values in demand', () => {
    const merge = new FleetMerge(100);
    const times = new LogLinear();
    const at = (node: string, second: number) => {
      const deniedKeys = [{ policy: 'p', key: 'k', denied: 5 }];
      const hotKeys = [{ policy: 'hot', key: node, perPeriod: 7 }];
      hotKeys.push({ policy: 'hot', key: 'sku', perPeriod: 4 });
      const own = new LogLinear();
      own.merge(times);
      merge.add(
        snapshot(node, [series('total', '', 1, { times: own })], { deniedKeys, hotKeys }),
        second * SECOND,
      );
    };
    for (const node of ['a', 'b']) at(node, 0);
    for (let call = 0; call < 10; call++) times.record(1000);
    for (const node of ['a', 'b']) at(node, 1);
    merge.end(SECOND, 1000);
    expect(merge.table.total.seconds.at(1)).toMatchObject({ timed: 20, p50: 1024 });
    expect(merge.deniedKeys()).toEqual([{ policy: 'p', key: 'k', denied: 10 }]);
    expect(merge.hotKeys()).toEqual([
      { policy: 'hot', key: 'sku', perPeriod: 8 },
      { policy: 'hot', key: 'a', perPeriod: 7 },
      { policy: 'hot', key: 'b', perPeriod: 7 },
    ]);
  });
});

describe('Fleet', () => {
  function stage(names = ['a', 'b', 'c'], nodes = names.length) {
    const clock = new ManualClock(0);
    const board = new SharedBoard(clock);
    const counted = new Map(names.map((name) => [name, 0]));
    const failed: unknown[] = [];
    const salts = new Map<string, string>();
    const fleetOf = (nodeId: string): Fleet =>
      new Fleet({
        ...{ nodeId, board: board.of({}), clock, maxSeries: 100 },
        snapshot: () => snapshot(nodeId, [series('total', '', counted.get(nodeId)!)]),
        nodes: () => nodes,
        isAlarmed: () => false,
        about: nothingElse,
        useSalt: (salt) => salts.set(nodeId, Buffer.from(salt).toString('hex')),
        failed: (error) => failed.push(error),
      });
    const fleets = new Map(names.map((name) => [name, fleetOf(name)]));
    const seconds = async (count: number): Promise<void> => {
      for (let second = 0; second < count; second++) {
        for (const name of fleets.keys()) counted.set(name, counted.get(name)! + 10);
        await clock.advanceAsync(1000);
        for (const fleet of fleets.values()) fleet.tick(clock.now());
        await clock.advanceAsync(0);
        await clock.advanceAsync(0);
        await clock.advanceAsync(0);
      }
    };
    const leaders = () =>
      [...fleets].filter(([, { isLeading }]) => isLeading).map(([name]) => name);
    return { clock, board, fleets, seconds, leaders, failed, salts, counted };
  }

  const totalOf = (state: Awaited<ReturnType<Fleet['state']>>) =>
    state?.series.find(({ name }) => name === 'total')?.rate;

  it('shows all nodes on any of them, and one of them merges', async () => {
    const { fleets, seconds, leaders, failed, salts } = stage();
    await seconds(30);
    expect(failed).toEqual([]);
    expect(leaders()).toHaveLength(1);
    for (const fleet of fleets.values()) {
      const state = await fleet.state();
      expect(state!.nodes.map(({ node }) => node).sort()).toEqual(['a', 'b', 'c']);
      expect(totalOf(state)).toBeCloseTo(30, 0);
    }
    expect(new Set(salts.values()).size).toBe(1);
  });

  it('has the past of all nodes on any of them, at three horizons', async () => {
    const { fleets, seconds, leaders } = stage();
    const follower = () => [...fleets].find(([, { isLeading }]) => !isLeading)![1];
    await seconds(130);
    for (let look = 0; look < 10; look++) {
      await follower().state();
      await seconds(1);
    }
    for (const fleet of [fleets.get(leaders()[0]!)!, follower()]) {
      for (const horizon of ['seconds', 'minutes', 'hours'] as const) {
        const history = (await fleet.historyOf('total', horizon))!;
        const known = history.rate.filter((rate) => rate !== null);
        expect(known.length).toBeGreaterThan(0);
        expect(known.at(-1)).toBeGreaterThan(20);
        expect(history.startMs + history.stepMs * history.rate.length).toBeGreaterThan(140_000);
      }
      expect(await fleet.historyOf('app:none', 'minutes')).toBeUndefined();
      expect(await fleet.historyOf('nonsense', 'minutes')).toBeUndefined();
    }
  });

  it('has another leader within ten seconds, with what happened before', async () => {
    const { fleets, seconds, leaders, board } = stage();
    await seconds(150);
    const [gone] = leaders();
    fleets.delete(gone!);
    await seconds(12);
    expect(leaders()).toHaveLength(1);
    const { table } = fleets.get(leaders()[0]!)!.merge!;
    const entries = Object.keys(await board.entries('minutes'));
    expect(entries.length).toBeGreaterThanOrEqual(2);
    for (const minute of entries)
      expect(table.total.minutes.at(Number(minute))!.count).toBeGreaterThan(0);
  });

  it('says which node is silent, and misses none that has left', async () => {
    const { fleets, seconds, leaders } = stage();
    await seconds(20);
    const followers = [...fleets.keys()].filter((name) => !leaders().includes(name));
    const left = fleets.get(followers[0]!)!;
    fleets.delete(followers[0]!);
    fleets.delete(followers[1]!);
    await left.close();
    await seconds(25);
    const state = await fleets.get(leaders()[0]!)!.state();
    const shown = Object.fromEntries(state!.nodes.map(({ node, isSilent }) => [node, isSilent]));
    expect(shown).toEqual({ [leaders()[0]!]: false, [followers[1]!]: true });
  });

  it('merges few at a time where that takes long, and all of them', async () => {
    let [turns, micros] = [0, 0];
    const clock = new ManualClock(0);
    const { soon } = clock;
    clock.now = () => (micros += 300);
    clock.soon = (task) => (turns++, soon.call(clock, task));
    const board = new MemoryBoard({ now: () => 0 });
    for (let node = 0; node < 100; node++) {
      const own = snapshot(`node-${node}`, [series('total', '', 10)]);
      await board.write(own.node, encodeSnapshot(own), 1e9);
    }
    const fleet = new Fleet({
      ...{ nodeId: 'node-0', board, clock, maxSeries: 100, nodes: () => 100 },
      snapshot: () => snapshot('node-0', [series('total', '', 10)]),
      ...{ isAlarmed: () => false, about: nothingElse, useSalt: () => {}, failed: () => {} },
    });
    fleet.tick(5e6);
    for (let turn = 0; turn < 100 && fleet.merge?.nodes().length !== 100; turn++) {
      await clock.advanceAsync(0);
    }
    expect(fleet.merge!.nodes()).toHaveLength(100);
    expect(turns).toBeGreaterThan(15);
  });

  it('writes once a second while somebody looks, and seldom again afterwards', async () => {
    const { fleets, seconds, board } = stage(['a']);
    let writes = 0;
    const { write } = board;
    board.write = (...args) => (writes++, write.apply(board, args));
    // A node that starts is looked at.
    await seconds(5);
    expect(writes).toBeGreaterThanOrEqual(3);
    writes = 0;
    await seconds(20);
    expect(writes).toBeLessThanOrEqual(5);
    writes = 0;
    for (let look = 0; look < 20; look++) {
      await fleets.get('a')!.state();
      await seconds(1);
    }
    expect(writes).toBeGreaterThanOrEqual(14);
    await seconds(25);
    writes = 0;
    await seconds(20);
    expect(writes).toBeLessThanOrEqual(5);
  });

  describe('of a thousand nodes', () => {
    /** Two of them; `writes` are those of the one that does not lead. */
    async function two() {
      const staged = stage(['a', 'b'], 1000);
      const { fleets, seconds, board, leaders } = staged;
      await seconds(60);
      const follower = [...fleets.keys()].find((name) => !leaders().includes(name))!;
      const writes: [atMs: number, ttlMs: number][] = [];
      const { write } = board;
      board.write = (node, text, ttlMs) => {
        if (node === follower) writes.push([staged.clock.now() / 1000, ttlMs]);
        return write.call(board, node, text, ttlMs);
      };
      const polled = async (times: number): Promise<void> => {
        for (let poll = 0; poll < times; poll++) {
          await seconds(5);
          for (const listener of board.otherCall) listener();
          await staged.clock.advanceAsync(0);
        }
      };
      return { ...staged, follower, writes, polled };
    }

    it('writes seldom by itself, and as often as of few while somebody looks', async () => {
      const { fleets, seconds, writes, follower } = await two();
      await seconds(100);
      expect(writes).toHaveLength(5);
      expect(writes[0]![1]).toBe(60_000);
      const look = async (times: number): Promise<void> => {
        for (let n = 0; n < times; n++) {
          await fleets.get(follower)!.state();
          await seconds(10);
        }
      };
      // It hears of it when it writes next.
      await look(3);
      writes.length = 0;
      await look(10);
      expect(Math.abs(writes.length - 20)).toBeLessThanOrEqual(1);
    });

    it('writes along with other calls, every five seconds, and alone again without them', async () => {
      const { seconds, writes, polled } = await two();
      await polled(2);
      writes.length = 0;
      await polled(20);
      expect(writes).toHaveLength(20);
      expect(new Set(writes.map(([, ttlMs]) => ttlMs))).toEqual(new Set([15_000]));
      const lastAlong = writes.at(-1)![0];
      writes.length = 0;
      await seconds(30);
      expect(writes.map(([atMs]) => atMs - lastAlong)[0]).toBe(10_000);
      expect(writes.length).toBeLessThanOrEqual(2);
    });

    it('goes along no more often than that, and never where it leads', async () => {
      const { board, seconds, writes, leaders, fleets, clock } = await two();
      let ofLeader = 0;
      const counted = board.write;
      board.write = (node, ...rest) => {
        if (node === leaders()[0]) ofLeader++;
        return counted.call(board, node, ...rest);
      };
      writes.length = 0;
      for (let second = 0; second < 40; second++) {
        await seconds(1);
        for (const listener of board.otherCall) listener();
        await clock.advanceAsync(0);
      }
      expect(writes.length).toBeLessThanOrEqual(10);
      expect(ofLeader).toBe(8);
      for (const fleet of fleets.values()) await fleet.close();
      expect(board.otherCall.size).toBe(0);
    });

    it('misses one within twenty seconds of its last figures', async () => {
      const { fleets, seconds, polled, leaders, follower } = await two();
      await polled(4);
      fleets.delete(follower);
      await seconds(20);
      const state = await fleets.get(leaders()[0]!)!.state();
      expect(state!.nodes.find(({ node }) => node === follower)!.isSilent).toBe(true);
    });
  });

  it('asks for the right to merge only where nobody has it', async () => {
    const { seconds, leaders, board, fleets } = stage();
    let asked = 0;
    const askedBy = (mark: object): boolean => board.leader?.mark !== mark && ++asked > 0;
    board.asks = askedBy;
    await seconds(15);
    asked = 0;
    await seconds(60);
    expect([leaders().length, asked]).toEqual([1, 0]);
    fleets.delete(leaders()[0]!);
    await seconds(12);
    expect(leaders()).toHaveLength(1);
    expect(asked).toBeGreaterThan(0);
  });

  it('has no leader while the store is away, and one again after that', async () => {
    const { seconds, leaders, board, failed } = stage();
    await seconds(15);
    board.isAway = true;
    await seconds(10);
    expect(leaders()).toEqual([]);
    expect(failed.length).toBeGreaterThan(0);
    board.isAway = false;
    await seconds(12);
    expect(leaders()).toHaveLength(1);
  });

  it('never shows less than there is: not at first, not after a failed turn, not after an outage', async () => {
    const { seconds, board, fleets } = stage();
    const shown: (number | undefined)[] = [];
    const look = async (count: number): Promise<void> => {
      for (let second = 0; second < count; second++) {
        await seconds(1);
        for (const fleet of fleets.values()) shown.push(totalOf(await fleet.state()));
      }
    };
    await look(20);
    expect(shown.slice(0, 12)).toContain(30);
    for (let fault = 0; fault < 5; fault++) {
      board.isAway = true;
      await look(1);
      board.isAway = false;
      await look(7);
    }
    board.isAway = true;
    await look(15);
    board.isAway = false;
    await look(20);
    const known = shown.filter((total) => total !== undefined);
    expect(known.length).toBeGreaterThan(150);
    expect(Math.min(...known)).toBeGreaterThanOrEqual(29);
  });

  it('skips no second for ticks that come a moment early or late', async () => {
    const { fleets, board, clock } = stage([...'abcdefghijkl']);
    const written = new Map<string, number>();
    const { write } = board;
    board.write = (node, ...rest) => {
      written.set(node, (written.get(node) ?? 0) + 1);
      return write.call(board, node, ...rest);
    };
    for (let second = 1; second <= 40; second++) {
      const jitter = second % 2 === 0 ? 200_000 : -900;
      await clock.advanceAsync(1000);
      for (const fleet of fleets.values()) {
        await fleet.state();
        fleet.tick(clock.now() + jitter);
      }
      for (let turn = 0; turn < 3; turn++) await clock.advanceAsync(0);
    }
    for (const count of written.values()) expect(count).toBeGreaterThanOrEqual(35);
  });

  it('counts what is on the board and none of ours, and goes on', async () => {
    const { seconds, leaders, board, fleets } = stage();
    await board.write('forged', 'x'.repeat(1_000_000), 1e9);
    await board.write('newer', '{"v":9}', 1e9);
    await seconds(20);
    const state = await fleets.get(leaders()[0]!)!.state();
    expect(state).toMatchObject({ damaged: 1, otherVersions: 1, nodeCount: 3 });
  });
});
