import { Fleet } from '../../lib/observability/fleet/fleet.js';
import { encodeSnapshot } from '../../lib/observability/fleet/snapshot.js';
import { type Mark } from '../../lib/observability/state.js';
import { MemoryBoard } from '../../lib/stores/memory/memory-board.js';
import { ManualClock } from '../support/manual-clock.js';
import { SharedBoard } from './shared-board.js';
import { nothingElse, series, snapshot } from './snapshots.js';

describe('Fleet', () => {
  function stage(names = ['a', 'b', 'c'], nodes = names.length, clock = new ManualClock(0)) {
    const load = { perSecond: 10 };
    const board = new SharedBoard(clock);
    const counted = new Map(names.map((name) => [name, 0]));
    const failed: unknown[] = [];
    const salts = new Map<string, string>();
    /** The events that a node has seen itself. */
    const marks = new Map<string, Mark[]>();
    const fleetOf = (nodeId: string): Fleet =>
      new Fleet({
        ...{ nodeId, board: board.of({}), clock, maxSeries: 100 },
        snapshot: () => snapshot(nodeId, [series('total', '', counted.get(nodeId)!)]),
        nodes: () => nodes,
        isAlarmed: () => false,
        about: () => ({ ...nothingElse(), marks: marks.get(nodeId) ?? [] }),
        useSalt: (salt) => salts.set(nodeId, Buffer.from(salt).toString('hex')),
        failed: (error) => failed.push(error),
      });
    const fleets = new Map(names.map((name) => [name, fleetOf(name)]));
    const seconds = async (count: number): Promise<void> => {
      for (let second = 0; second < count; second++) {
        for (const name of fleets.keys()) counted.set(name, counted.get(name)! + load.perSecond);
        await clock.advanceAsync(1000);
        for (const fleet of fleets.values()) fleet.tick(clock.now());
        await clock.advanceAsync(0);
        await clock.advanceAsync(0);
        await clock.advanceAsync(0);
      }
    };
    const leaders = () =>
      [...fleets].filter(([, { isLeading }]) => isLeading).map(([name]) => name);
    return { clock, board, fleets, seconds, leaders, failed, salts, counted, load, marks };
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

  it('has the last seconds without a hole, though nobody looked and merges came seldom', async () => {
    const { fleets, seconds, leaders } = stage();
    const follower = () => [...fleets].find(([, { isLeading }]) => !isLeading)![1];
    const ratesOf = async (fleet: Fleet, last: number): Promise<(number | null)[]> =>
      (await fleet.historyOf('total', 'seconds'))!.rate.slice(-last - 6, -6);
    await seconds(60);
    const leader = fleets.get(leaders()[0]!)!;
    for (const rate of await ratesOf(leader, 40)) expect(rate).toBeGreaterThan(20);
    await follower().state();
    for (let look = 0; look < 30; look++) {
      await seconds(look < 20 ? 5 : 1);
      await follower().state();
    }
    for (const rate of await ratesOf(follower(), 90)) expect(rate).toBeGreaterThan(20);
  });

  it('has the last two minutes for whoever begins to look, and for the next leader', async () => {
    const { fleets, seconds, leaders, load } = stage();
    await seconds(100);
    load.perSecond = 20;
    await seconds(60);
    const [gone] = leaders();
    const fromFirst = async (fleet: Fleet): Promise<(number | null)[]> =>
      (await fleet.historyOf('total', 'seconds'))!.rate.slice(0, -10);
    const follower = [...fleets].find(([, { isLeading }]) => !isLeading)![1];
    expect(await follower.state()).toBeDefined();
    const seen = await fromFirst(follower);
    expect(seen).toHaveLength(110);
    for (const rate of seen.slice(0, 40)) expect(rate).toBeCloseTo(30, 0);
    for (const rate of seen.slice(-40)) expect(rate).toBeCloseTo(60, 0);

    fleets.delete(gone!);
    await seconds(12);
    const next = await fromFirst(fleets.get(leaders()[0]!)!);
    for (const rate of next.slice(0, 30)) expect(rate).toBeCloseTo(30, 0);
    for (const rate of next.slice(60, 90)) expect(rate).toBeCloseTo(60, 0);
  });

  it.each([
    '',
    '{',
    '[]',
    'null',
    '{"first":1}',
    '{"first":"x","series":{}}',
    '{"first":0,"series":{"total":{"spanMs":3}}}',
  ])('takes no seconds out of a damaged text: %s', async (text) => {
    const { fleets, seconds, leaders, board, failed } = stage();
    await seconds(30);
    await board.set('seconds', text, 60_000);
    const follower = [...fleets].find(([name]) => name !== leaders()[0])![1];
    await follower.state();
    const known = (await follower.historyOf('total', 'seconds'))!.rate.filter(Boolean);
    expect(known.length).toBeLessThan(10);
    expect(failed).toEqual([]);
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

  it('shows the events of before when another leads, who has not seen them', async () => {
    const { fleets, seconds, leaders, marks, clock } = stage();
    await seconds(20);
    const [gone] = leaders();
    const atMs = clock.epochMs(clock.now());
    const mark: Mark = { atMs, kind: 'store', text: 'Redis is away' };
    marks.set(gone!, [mark]);
    await seconds(10);
    fleets.delete(gone!);
    await seconds(20);
    expect(leaders()).not.toContain(gone);
    for (const fleet of fleets.values()) expect((await fleet.state())!.marks).toEqual([mark]);
  });

  /** A fleet that starts three minutes before one o'clock, and is busy in the last of them. */
  async function busyBeforeOne() {
    const staged = stage(['a', 'b', 'c'], 3, new ManualClock(0, 57 * 60_000));
    const { seconds, load } = staged;
    const peaksOf = async (fleet: Fleet): Promise<number[]> => {
      const { peak } = (await fleet.historyOf('total', 'hours'))!;
      return peak.flatMap((one) => one ?? []);
    };
    await seconds(120);
    load.perSecond = 40;
    await seconds(50);
    load.perSecond = 10;
    return { ...staged, peaksOf };
  }

  it('has the last minute of an hour on every node', async () => {
    const { fleets, seconds, leaders, peaksOf } = await busyBeforeOne();
    await seconds(130);
    const leader = fleets.get(leaders()[0]!)!;
    expect((await peaksOf(leader))[0]).toBeGreaterThan(90);
    for (const fleet of fleets.values())
      expect(await peaksOf(fleet)).toEqual(await peaksOf(leader));
  });

  it('has the busiest minute after an outage as well, though it had only just passed', async () => {
    const { fleets, seconds, leaders, board, peaksOf } = await busyBeforeOne();
    board.isAway = true;
    await seconds(15);
    board.isAway = false;
    await seconds(30);
    expect((await peaksOf(fleets.get(leaders()[0]!)!))[0]).toBeGreaterThan(90);
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

  it('tells of a silent node however many others are busier', async () => {
    const { fleets, seconds, board } = stage(['a']);
    const busy = Array.from({ length: 250 }, (_, index) => `busy-${index}`);
    const write = (name: string, count: number): Promise<unknown> =>
      board.write(name, encodeSnapshot(snapshot(name, [series('total', '', count)])), 15_000);
    await write('gone', 1);
    for (let turn = 1; turn <= 12; turn++) {
      for (const name of busy) await write(name, 100 * turn);
      await seconds(5);
    }
    const { nodes, nodeCount } = (await fleets.get('a')!.state())!;
    expect([nodes.length, nodeCount]).toEqual([200, 252]);
    expect(nodes[0]).toMatchObject({ node: 'gone', isSilent: true });
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

  describe('of nodes that are as busy all the time', () => {
    const PER_SECOND = 1000;

    /** Each ticks at its own moment of a second, as `phaseOf` says, and counts by its own clock. */
    function busy(names: readonly string[], phaseOf: (name: string, second: number) => number) {
      const clock = new ManualClock(0);
      const board = new SharedBoard(clock);
      const fleets = new Map(
        names.map((nodeId, index) => {
          const counted = (): number => Math.floor((clock.now() / 1e6) * PER_SECOND);
          const fleet = new Fleet({
            ...{ nodeId, board: board.of({}), clock, maxSeries: 100 },
            snapshot: () =>
              snapshot(nodeId, [series('total', '', counted())], {
                atMs: clock.now() / 1000 + index * 3_600_000,
              }),
            ...{ nodes: () => names.length, isAlarmed: () => false, about: nothingElse },
            ...{ useSalt: () => {}, failed: (error: unknown) => expect.fail(String(error)) },
          });
          return [nodeId, fleet];
        }),
      );
      let second = 0;
      const seconds = async (count: number): Promise<void> => {
        for (const end = second + count; second < end; second++) {
          const ticks = names.map((name) => [phaseOf(name, second), name] as const);
          let passed = 0;
          for (const [phase, name] of ticks.sort(([one], [other]) => one - other)) {
            await clock.advanceAsync(phase - passed);
            passed = phase;
            fleets.get(name)!.tick(clock.now());
            for (let turn = 0; turn < 3; turn++) await clock.advanceAsync(0);
          }
          await clock.advanceAsync(1000 - passed);
        }
      };
      const leader = (): Fleet => [...fleets.values()].find(({ isLeading }) => isLeading)!;
      return { seconds, leader };
    }

    /** The parts of the truth that somebody sees who looks each second. */
    async function seen(
      { seconds, leader }: ReturnType<typeof busy>,
      nodes: number,
      looks: number,
    ) {
      const parts: number[] = [];
      for (let look = 0; look < looks; look++) {
        await seconds(1);
        parts.push(totalOf(await leader().state())! / (nodes * PER_SECOND));
      }
      return [Math.min(...parts), Math.max(...parts)] as const;
    }

    it.each([
      [0, 0, 0],
      [100, 400, 700],
      [700, 400, 100],
      [500, 499, 501],
    ])('shows no burst when somebody begins to look: ticks at %d, %d and %d ms', async (...at) => {
      const names = ['a', 'b', 'c'];
      for (let quiet = 200; quiet < 206; quiet++) {
        const fleet = busy(names, (name) => at[names.indexOf(name)]!);
        await fleet.seconds(quiet);
        const [least, most] = await seen(fleet, 3, 30);
        expect(least).toBeGreaterThan(0.75);
        expect(most).toBeLessThan(1.3);
      }
    });

    it('shows no change where nodes write a moment before or after the look', async () => {
      const fleet = busy(['a', 'b'], (name, second) =>
        name === 'a' ? 500 : second % 4 < 2 ? 495 : 505,
      );
      await seen(fleet, 2, 20);
      const [least, most] = await seen(fleet, 2, 100);
      expect(least).toBeGreaterThan(0.9);
      expect(most).toBeLessThan(1.1);
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
    const { seconds, leaders, board, failed, fleets } = stage();
    await seconds(15);
    const before = fleets.get(leaders()[0]!)!;
    board.isAway = true;
    await seconds(10);
    expect(leaders()).toEqual([]);
    // It still knows what it has merged last, whoever asks first.
    expect(before.lastSeen!.nodes).toHaveLength(3);
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
    // Once so short that what they wrote is still there, once so long that it is not.
    for (const awaySeconds of [10, 30]) {
      board.isAway = true;
      await look(awaySeconds);
      board.isAway = false;
      await look(20);
    }
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

  it('shows none of what somebody else has put in the place of the fleet, and says so', async () => {
    const { fleets, seconds, leaders, board, failed } = stage();
    await seconds(20);
    const follower = [...fleets].find(([name]) => !leaders().includes(name))![1];
    await board.set('merged', '{"v":1,"nodes":[],"series":[]}', 1e9);
    expect(await follower.state()).toBeUndefined();
    expect(failed.map(String)).toEqual(['Error: the figures that are there are damaged']);
    await seconds(6);
    expect((await follower.state())!.nodeCount).toBe(3);
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
