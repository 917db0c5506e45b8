import { Cluster, Redis } from 'ioredis';
import { type Alert } from '../../lib/observability/alerts/alert.js';
import { Alerting } from '../../lib/observability/alerts/alerting.js';
import { Fleet } from '../../lib/observability/fleet/fleet.js';
import { type NodeSnapshot } from '../../lib/observability/fleet/snapshot.js';
import { type Facts } from '../../lib/observability/sources.js';
import { noCounts } from '../../lib/observability/series.js';
import { RedisBoard } from '../../lib/stores/redis/redis-board.js';
import { RedisConfig } from '../../lib/stores/redis/redis-config.js';
import { wireOf } from '../../lib/stores/redis/wire.js';
import { InProcessRedis } from '../../lib/testing/index.js';
import { startRedis, startRedisCluster, stopAll, until } from '../support/index.js';
import { leastUser } from '../support/least-acl.js';
import { ManualClock } from '../support/manual-clock.js';
import { infoField } from '../support/redis-client.js';
import { nothingElse, snapshot } from '../observability/snapshots.js';

type Client = Redis | Cluster;

const OPEN: NodeSnapshot['resources'][number] = {
  ...{ resource: 'db', breaker: 'open', phase: undefined, percent: undefined, falls: 0 },
};

describe('the board in Redis', () => {
  const clients: Client[] = [];
  const boards: RedisBoard[] = [];

  async function ready<C extends Client>(client: C): Promise<C> {
    client.on('error', () => undefined);
    clients.push(client);
    await until(() => client.status === 'ready', { what: 'the connection' });
    return client;
  }

  function boardOn(client: Client, clock = new ManualClock()): RedisBoard {
    const board = new RedisBoard({ client, prefix: 'weir' }, clock);
    boards.push(board);
    return board;
  }

  afterEach(async () => {
    for (const board of boards.splice(0)) board.close();
    for (const client of clients.splice(0)) client.disconnect();
    await stopAll();
  });

  it('goes along with a read of the configuration, and wakes Redis once for both', async () => {
    const server = await startRedis();
    const client = await ready(new Redis(server.url));
    const admin = await ready(new Redis(server.adminUrl));
    const reads = async (): Promise<number> =>
      Number(infoField(await admin.info('stats'), 'total_reads_processed'));
    const [config, board] = [
      new RedisConfig({ client, prefix: 'weir' }, new ManualClock()),
      boardOn(client),
    ];
    // Scripts in full, and the list of nodes.
    await config.read();
    await board.write('a', 'figures', 60_000);
    let along = Promise.resolve<unknown>(undefined);
    const stop = board.onOtherCall(() => {
      along = board.write('a', 'x'.repeat(8000), 60_000);
    });
    const before = await reads();
    await config.read();
    expect(await along).toEqual({ isWatched: false, isLedByAnother: false });
    // One of them is the asking.
    expect((await reads()) - before).toBe(2);
    expect(await board.read(['a'])).toEqual([{ node: 'a', text: 'x'.repeat(8000) }]);
    stop();
    along = Promise.resolve('not called');
    await config.read();
    expect(await along).toBe('not called');
    await config.close();
  });

  it.each(['server', 'cluster', 'server in process'] as const)(
    'does on a %s what it says, with the least rights',
    async (kind) => {
      const connect = await connectionTo(kind);
      const [one, other] = [boardOn(await ready(connect())), boardOn(await ready(connect()))];
      const nobody = { isWatched: false, isLedByAnother: false };
      expect(await one.write('a', 'figures of a', 60_000)).toEqual(nobody);
      expect(await other.write('b', 'figures of b', 60_000)).toEqual(nobody);
      expect((await one.nodes()).sort()).toEqual(['a', 'b']);
      expect(await one.read(['a', 'b', 'c'])).toEqual([
        { node: 'a', text: 'figures of a' },
        { node: 'b', text: 'figures of b' },
        { node: 'c', text: undefined },
      ]);
      expect([await one.lead(60_000), await other.lead(60_000), await one.lead(60_000)]).toEqual([
        ...[true, false, true],
      ]);
      await one.set('watch', '1', 60_000);
      expect([
        await one.write('a', 'figures of a', 60_000),
        await other.write('b', 'figures of b', 60_000),
      ]).toEqual([
        { isWatched: true, isLedByAnother: false },
        { isWatched: true, isLedByAnother: true },
      ]);
      await one.resign();
      expect(await other.lead(60_000)).toBe(true);
      await one.set('merged', 'all', 60_000);
      expect([await other.get('merged'), await other.peek('merged')]).toEqual(['all', 'all']);
      await one.putEntry('minutes', 10, 'ten', 0);
      await one.putEntry('minutes', 11, 'eleven', 11);
      expect(await other.entries('minutes')).toEqual({ '11': 'eleven' });
      await one.forgetEntries('minutes', ['11']);
      expect(await other.entries('minutes')).toEqual({});
      expect(await one.marked('alerts')).toBeUndefined();
      const text = 'a text\nof two lines';
      expect(await one.swap('alerts', undefined, { mark: 'm1', text }, 60_000)).toBe(true);
      expect(await other.marked('alerts')).toEqual({ mark: 'm1', text });
      // A process that has not read it does not write over it; asked twice, the answer is the same.
      const late = { mark: 'm2', text: 'late' };
      expect(await other.swap('alerts', undefined, late, 60_000)).toBe(false);
      expect(await one.swap('alerts', undefined, { mark: 'm1', text }, 60_000)).toBe(true);
      expect(await other.swap('alerts', 'm1', late, 60_000)).toBe(true);
      expect(await one.marked('alerts')).toEqual(late);
      await one.remove('a');
      expect(await other.nodes()).toEqual(['b']);
      expect(wireOf(clients[0]!).calls.board.times.count).toBeGreaterThan(10);
    },
  );

  it('lets one of three processes merge and tell, and another one when that is gone', async () => {
    const connect = await connectionTo('server');
    const clock = new ManualClock(0);
    const told: Alert[] = [];
    const stage = await Promise.all(
      ['a', 'b', 'c'].map(async (nodeId, place) => {
        const client = await ready(connect());
        const board = boardOn(client, clock);
        const counts = noCounts();
        const send = (batch: readonly Alert[]): void => void told.push(...batch);
        const alerting = new Alerting({
          ...{ nodeId, service: 'shop', clock, sinks: [{ send }], fault: () => {}, board },
        });
        const fleet = new Fleet({
          ...{ nodeId, board, clock, maxSeries: 100, nodes: () => 3 },
          isAlarmed: () => alerting.isAlarmed,
          leads: (epochMicros) => alerting.fleet!.begin(epochMicros),
          follows: () => alerting.fleet!.end(),
          useSalt: () => {},
          failed: () => {},
          about: async (seen) => {
            await alerting.lookAtFleet({ ...seen, facts: { limiter: {} } as Facts });
            return nothingElse();
          },
          snapshot: () =>
            snapshot(
              nodeId,
              [{ kind: 'total', name: '', counts: { ...counts }, times: undefined }],
              { resources: [OPEN] },
            ),
        });
        return { nodeId, client, fleet, counts, place };
      }),
    );
    const living = new Set(stage);
    const turn = async (): Promise<void> => {
      for (const { counts } of living) counts.count += 10;
      clock.advance(1000);
      for (const { fleet } of living) {
        fleet.tick(clock.now());
        await fleet.settled();
      }
    };
    const leader = () => [...living].filter(({ fleet }) => fleet.isLeading);
    for (let second = 0; second < 45; second++) await turn();
    expect(leader()).toHaveLength(1);
    expect(told).toMatchObject([{ rule: 'breakerOpen', series: 'resource:db', state: 'firing' }]);
    for (const { fleet } of stage) {
      const state = await fleet.state();
      expect(state).toMatchObject({ nodeCount: 3, isShared: true });
      expect(state!.series[0]!.rate).toBeCloseTo(30, 0);
    }
    const [gone] = leader();
    gone!.client.disconnect();
    living.delete(gone!);
    // Its term ends by the clock of Redis.
    await until(
      async () => {
        await turn();
        return leader().length === 1;
      },
      { what: 'another leader', intervalMs: 100 },
    );
    expect(leader()[0]!.nodeId).not.toBe(gone!.nodeId);
    for (let second = 0; second < 5; second++) await turn();
    expect(told.filter(({ rule }) => rule === 'breakerOpen')).toHaveLength(1);
  });

  it('has a leader and all figures again after Redis has lost everything', async () => {
    const server = await startRedis();
    const clock = new ManualClock(0);
    const fleets = await Promise.all(
      ['a', 'b'].map(async (nodeId) => {
        const counts = noCounts();
        const fleet = new Fleet({
          ...{ nodeId, board: boardOn(await ready(new Redis(server.url)), clock), clock },
          ...{ maxSeries: 100, nodes: () => 2, isAlarmed: () => false, about: nothingElse },
          ...{ useSalt: () => {}, failed: () => {} },
          snapshot: () => {
            const total = { kind: 'total', name: '', counts: { ...counts } } as const;
            return snapshot(nodeId, [{ ...total, times: undefined }]);
          },
        });
        return { fleet, counts };
      }),
    );
    const turn = async (): Promise<void> => {
      clock.advance(1000);
      for (const { fleet, counts } of fleets) {
        counts.count += 10;
        fleet.tick(clock.now());
        await fleet.settled();
      }
    };
    const rate = async (): Promise<number | undefined> => {
      await turn();
      const state = await fleets[0]!.fleet.state();
      return state?.nodeCount === 2 ? Math.round(state.series[0]!.rate) : undefined;
    };
    const whole = { what: 'figures of both', intervalMs: 5 };
    await until(async () => (await rate()) === 20, whole);
    await server.restart();
    await until(() => clients.every(({ status }) => status === 'ready'), { what: 'connections' });
    for (let second = 0; second < 60; second++) await turn();
    await until(async () => (await rate()) === 20, whole);
    expect(fleets.filter(({ fleet }) => fleet.isLeading)).toHaveLength(1);
  });

  async function connectionTo(
    kind: 'server' | 'cluster' | 'server in process',
  ): Promise<() => Client> {
    if (kind === 'server in process') {
      const { driver } = new InProcessRedis().store();
      return () => new driver!.Redis();
    }
    if (kind === 'cluster') {
      const { nodes } = await startRedisCluster({ replicasPerMaster: 0 });
      return () => new Cluster(nodes.map(({ host, port }) => ({ host, port })));
    }
    const server = await startRedis({ config: { user: leastUser('~weir:* &weir:*') } });
    return () => new Redis(server.url);
  }
});
