import { type Alert } from '../../lib/observability/alerts/alert.js';
import { keyOf } from '../../lib/observability/alerts/alert.js';
import { Alerting } from '../../lib/observability/alerts/alerting.js';
import { Fleet } from '../../lib/observability/fleet/fleet.js';
import { type NodeSnapshot } from '../../lib/observability/fleet/snapshot.js';
import { type Facts } from '../../lib/observability/sources.js';
import { type BreakerKind } from '../../lib/protection/breaker-state.js';
import { type BoardStore } from '../../lib/stores/board-store.js';
import { ManualClock } from '../support/manual-clock.js';
import { SharedBoard } from './shared-board.js';
import { nothingElse, series, snapshot } from './snapshots.js';

const FACTS = {
  ...{ limiter: { policies: {}, store: { nodes: 3 } }, calls: {}, storeIsUp: true },
  ...{ protection: {}, degradation: undefined },
} as unknown as Facts;

/** A clock that is off by so much. */
class OtherClock extends ManualClock {
  constructor(
    private readonly time: ManualClock,
    private readonly offMs: number,
  ) {
    super();
  }

  override now(): number {
    return this.time.now();
  }

  override epochMs(nowMicros: number): number {
    return this.time.epochMs(nowMicros) + this.offMs;
  }

  override soon(task: () => void): () => void {
    return this.time.soon(task);
  }
}

/** Nodes of a fleet, each with alerts and a sink of its own. */
function stage(
  names = ['a', 'b', 'c'],
  offMs: Readonly<Record<string, number>> = {},
  count = names.length,
) {
  const time = new ManualClock(0);
  const board = new SharedBoard(time);
  const told: { readonly by: string; readonly alert: Alert }[] = [];
  const failed: unknown[] = [];
  let state: BreakerKind = 'closed';
  /** Of each node: so far, and each second. */
  let [requests, perSecond] = [10, 0];
  const revisions = new Map<string, number>();
  const nodeOf = (nodeId: string) => {
    const clock = new OtherClock(time, offMs[nodeId] ?? 0);
    const view: BoardStore = board.of({});
    const send = (batch: readonly Alert[]): void => {
      for (const alert of batch) told.push({ by: nodeId, alert });
    };
    const alerting = new Alerting({
      ...{ nodeId, service: 'shop', clock, sinks: [{ send }], fault: () => {}, board: view },
    });
    const own = (): NodeSnapshot => {
      const db = { resource: 'db', breaker: state, phase: undefined, percent: undefined, falls: 0 };
      const revision = revisions.get(nodeId) ?? 4;
      return snapshot(nodeId, [series('total', '', requests)], { resources: [db], revision });
    };
    const fleet = new Fleet({
      ...{ nodeId, board: view, clock, maxSeries: 100, snapshot: own, nodes: () => count },
      isAlarmed: () => alerting.isAlarmed,
      about: async (seen) => {
        await alerting.lookAtFleet({ ...seen, facts: FACTS });
        return { ...nothingElse(), alerts: alerting.list() };
      },
      leads: (epochMicros) => alerting.fleet!.begin(epochMicros),
      follows: () => alerting.fleet!.end(),
      useSalt: () => {},
      failed: (error) => failed.push(error),
    });
    return { alerting, fleet, view };
  };
  const nodes = new Map(names.map((name) => [name, nodeOf(name)]));
  const seconds = async (count: number): Promise<void> => {
    for (let second = 0; second < count; second++) {
      requests += perSecond;
      await time.advanceAsync(1000);
      for (const { fleet } of nodes.values()) fleet.tick(time.now());
      for (let turn = 0; turn < 4; turn++) await time.advanceAsync(0);
    }
  };
  const leaders = () => [...nodes].filter(([, { fleet }]) => fleet.isLeading).map(([id]) => id);
  const heard = () => told.map(({ alert }) => `${alert.rule} ${alert.series} ${alert.state}`);
  const breaker = (kind: BreakerKind): void => void (state = kind);
  const rate = (each: number): void => void (perSecond = each);
  return { rate, nodes, board, seconds, leaders, told, heard, failed, breaker, revisions, time };
}

describe('the alerts of a fleet', () => {
  it('are told once, and not again when the one that told is gone', async () => {
    const { nodes, seconds, leaders, heard, told, breaker } = stage();
    await seconds(15);
    breaker('open');
    await seconds(45);
    expect(heard()).toEqual(['breakerOpen resource:db firing']);
    const [gone] = leaders();
    nodes.delete(gone!);
    await seconds(20);
    expect(leaders()).toHaveLength(1);
    expect(leaders()).not.toContain(gone);
    // It was killed, and so it is silent.
    expect(heard().slice(1)).toEqual([]);
    await seconds(30);
    expect(heard().slice(1)).toEqual([`nodeSilent node:${gone} firing`]);
    breaker('closed');
    await seconds(80);
    expect(heard()[2]).toBe('breakerOpen resource:db resolved');
    const [began, ended] = [told[0]!, told[2]!];
    expect(ended.by).not.toBe(began.by);
    expect(ended.alert.sinceMs).toBe(began.alert.sinceMs);
  });

  it('fire of a breaker that tries again and again', async () => {
    const { seconds, heard, breaker } = stage();
    await seconds(15);
    for (let times = 0; times < 5; times++) {
      breaker('open');
      await seconds(5);
      breaker('half-open');
      await seconds(5);
    }
    expect(heard()).toEqual(['breakerOpen resource:db firing']);
    breaker('closed');
    await seconds(80);
    expect(heard().slice(1)).toEqual(['breakerOpen resource:db resolved']);
  });

  it.each([
    [3, 'five', 0.5],
    [1000, 'twenty', 2],
  ])(
    'tell of more requests than usual, by figures that %i nodes write every %s seconds',
    async (count, _, within) => {
      const { seconds, heard, rate, told } = stage(undefined, undefined, count);
      rate(10);
      await seconds(300);
      expect(heard()).toEqual([]);
      rate(14);
      await seconds(30);
      expect(heard()).toEqual([]);
      rate(25);
      await seconds(30);
      expect(heard()).toEqual(['qpsRise total firing']);
      // Three nodes together; what was usual is from before.
      expect(told[0]!.alert.value).toBeGreaterThan(45);
      expect(Math.abs(told[0]!.alert.threshold - 45)).toBeLessThan(within);
    },
  );

  it('have the same mark from two that lead for a moment, and one of them tells', async () => {
    const { nodes, board, seconds, told, heard, breaker, failed } = stage();
    board.hasTwoLeaders = true;
    await seconds(15);
    breaker('open');
    await seconds(60);
    expect(heard()).toEqual(['breakerOpen resource:db firing']);
    const keys = [...nodes.values()].map(({ alerting }) => alerting.list().map(keyOf));
    expect(new Set(keys.flat())).toEqual(new Set([keyOf(told[0]!.alert)]));
    expect(keys.flat()).toHaveLength(3);
    expect(failed).toEqual([]);
  });

  it('do not depend on clocks that are an hour apart', async () => {
    const { nodes, seconds, leaders, heard, breaker } = stage(['a', 'b'], { b: -3_600_000 });
    await seconds(15);
    breaker('open');
    await seconds(20);
    // Not long enough: it goes on where the other one was.
    expect(heard()).toEqual([]);
    nodes.delete(leaders()[0]!);
    await seconds(35);
    expect(heard()).toContain('breakerOpen resource:db firing');
    breaker('closed');
    await seconds(75);
    expect(heard()).toContain('breakerOpen resource:db resolved');
  });

  it('are told later where nobody knows whether they were written', async () => {
    const { nodes, seconds, heard, breaker, board } = stage(['a']);
    const { view } = nodes.get('a')!;
    const swap = view.swap.bind(view);
    await seconds(15);
    let isLost = true;
    view.swap = async (name, ...rest) => {
      const isThere = await swap(name, ...rest);
      const isFiring = (await board.get('alerts'))?.includes('firing') === true;
      if (!isLost || name !== 'alerts' || !isFiring) return isThere;
      isLost = false;
      throw new Error('the answer was lost');
    };
    breaker('open');
    await seconds(50);
    expect(isLost).toBe(false);
    expect(heard()).toEqual(['breakerOpen resource:db firing']);
  });

  it('are not told while the store is away, and told when it is back', async () => {
    const { seconds, heard, breaker, board } = stage();
    await seconds(15);
    breaker('open');
    await seconds(10);
    board.isAway = true;
    await seconds(60);
    expect(heard()).toEqual([]);
    board.isAway = false;
    await seconds(60);
    expect(heard()).toEqual(['breakerOpen resource:db firing']);
  });

  it.each(['', '{', 'm\n{', 'm\n{"v":1,"at":0,"states":[[1]]}', `m\n${'['.repeat(9)}`])(
    'begin anew where what is on the board is none of ours: %j',
    async (text) => {
      const { seconds, heard, breaker, board, failed } = stage(['a']);
      await board.set('alerts', text, 1e9);
      await board.set('mutes', text, 1e9);
      await seconds(10);
      breaker('open');
      await seconds(45);
      expect(heard()).toEqual(['breakerOpen resource:db firing']);
      expect(failed).toEqual([]);
    },
  );

  it('tell of nodes that are not on the latest revision', async () => {
    const { seconds, heard, revisions } = stage();
    await seconds(15);
    revisions.set('b', 3);
    await seconds(50);
    expect(heard()).toEqual([]);
    await seconds(20);
    expect(heard()).toEqual(['configBehind total firing']);
    revisions.set('b', 4);
    await seconds(75);
    expect(heard()[1]).toBe('configBehind total resolved');
  });

  it('miss a node that is killed, and none that says goodbye', async () => {
    const { nodes, seconds, leaders, heard } = stage();
    await seconds(20);
    const [killed, closed] = [...nodes.keys()].filter((id) => !leaders().includes(id));
    await nodes.get(closed!)!.fleet.close();
    nodes.delete(closed!);
    nodes.delete(killed!);
    await seconds(40);
    expect(heard()).toEqual([`nodeSilent node:${killed} firing`]);
  });

  it('are muted on any node', async () => {
    const { nodes, seconds, leaders, heard, breaker, time } = stage();
    await seconds(15);
    const follower = [...nodes].find(([id]) => !leaders().includes(id))![1];
    await follower.alerting.mute('breakerOpen', 'resource:db', new Date(time.epochMs(150e6)));
    breaker('open');
    await seconds(60);
    expect(heard()).toEqual([]);
    const [leader] = leaders();
    expect(nodes.get(leader!)!.alerting.list()).toMatchObject([{ state: 'firing', muted: true }]);
    await seconds(90);
    expect(heard()).toEqual(['breakerOpen resource:db firing']);
  });
});
