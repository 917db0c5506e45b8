import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import {
  startRedisCluster,
  stopAll,
  until,
  withRedis,
  type RedisCluster,
} from '../support/index.js';
import {
  expectAllAnswered,
  expectSwitchesOnce,
  expectWithinBound,
  expectWithinBoundAndShares,
} from './expectations.js';
import { CAPACITY, Fleet, PACE_MICROS } from './fleet.js';
import { note } from './note.js';

const APPS = ['shop', 'search'];
const LOAD = [
  { app: 'shop', perSecond: 800 },
  { app: 'search', perSecond: 400 },
];
/** Credit begins empty after a loss: during overload the guarantees flow, 0.7 of the capacity. */
const LEAST_FIRST = 0.8 * CAPACITY;
const LEAST_AGAIN = 0.6 * CAPACITY;
const MASTERS = 3;
const SLOTS = 16_384;

describe('a quota on Redis Cluster', () => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    await ensureBuilt();
    cluster = await startRedisCluster({ masters: MASTERS, replicasPerMaster: 1 });
  }, BUILD_TIMEOUT_MS);

  afterAll(stopAll);

  it('keeps to the capacity, also when the master fails that holds its ledger', async () => {
    const nodes = cluster.nodes.map(({ host, port }) => ({ host, port }));
    const fleet = new Fleet({ type: 'redis', cluster: { nodes }, decisionTimeout: '1s' });
    await fleet.begin(LOAD, LOAD, LOAD);
    await fleet.goOn(0.5);
    const first = await fleet.rateOf(LEAST_FIRST);
    const before = fleet.admissions;
    const slot = await withRedis(nodes[0]!.port, (client) => client.cluster('KEYSLOT', '{chaos}'));
    const shard = Math.floor((Number(slot) * MASTERS) / SLOTS);
    await cluster.killMaster(shard);
    await until(() => fleet.processes.every((one) => one.modesOf('shop').includes('offline')));
    await cluster.failedOver(shard);
    await until(
      () =>
        fleet.processes.every(
          (one) =>
            one.modesOf('shop').at(-1) !== 'offline' &&
            one.happenings.some(({ name }) => name === 'epoch'),
        ),
      { what: 'all processes to find the new master' },
    );
    await fleet.goOn(0.5);
    const again = await fleet.rateOf(LEAST_AGAIN);
    expectAllAnswered(await fleet.close());

    expectWithinBound(before);
    const noticed = (CAPACITY * PACE_MICROS) / 1_000_000;
    expectWithinBoundAndShares(fleet.admissions, fleet.processes.length, noticed);
    expectSwitchesOnce(fleet.processes, APPS);
    note({ first, again, modes: fleet.processes.map((one) => one.modesOf('shop')) });
    expect(first).toBeGreaterThanOrEqual(LEAST_FIRST);
    expect(again).toBeGreaterThanOrEqual(LEAST_AGAIN);
  });
});
