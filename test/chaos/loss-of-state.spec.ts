import { Redis } from 'ioredis';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import {
  startPrimaryWithReplica,
  startProxy,
  startRedis,
  stopAll,
  until,
} from '../support/index.js';
import { deepestBurst, tokensWithin } from './admissions.js';
import {
  expectAllAnswered,
  expectSwitchesOnce,
  expectWithinBound,
  expectWithinBoundAndShares,
} from './expectations.js';
import {
  CAPACITY,
  DEPTH,
  Fleet,
  LEASE_TTL_MICROS,
  PACE_MICROS,
  SHARE_DEPTH,
  SHARES_BURST,
  SHARES_PER_SECOND,
} from './fleet.js';
import { viewLedger } from './ledger-view.js';
import { type LoadProcess } from './load-process.js';
import { note } from './note.js';
import { sharedMicros } from './process/protocol.js';

const APPS = ['shop', 'search'];
const LOAD = [
  { app: 'shop', perSecond: 800 },
  { app: 'search', perSecond: 400 },
];
/** Far more than there is, so that all there is goes at once. */
const SURGE = APPS.map((app) => ({ app, perSecond: 20_000 }));
/** Credit begins empty after a loss: during overload the guarantees flow, 0.7 of the capacity. */
const LEAST_USED = 0.6;
/** The excess over the bound of a loss that is noticed: C × pace. */
const NOTICED = (CAPACITY * PACE_MICROS) / 1_000_000;

function epochsOf(one: LoadProcess): number[] {
  return one.happenings.flatMap((event) => (event.name === 'epoch' ? [event.epoch] : []));
}

/**
 * For one lease time after the loss there is what was leased before it, which is never more than
 * half the depth, and what flows through a bucket of C × pace.
 */
function expectNoNewBurst(fleet: Fleet, lostBy: number, perSecond: number, shares = 0): void {
  const end = lostBy + LEASE_TTL_MICROS;
  const after = fleet.admissions.filter(({ from, to }) => from >= lostBy && to <= end);
  const [burst, most] = [deepestBurst(after, perSecond), DEPTH / 2 + NOTICED + shares];
  note({ burst, most });
  expect(burst).toBeLessThanOrEqual(most);
}

describe('a loss of the state', () => {
  beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);

  afterEach(stopAll);

  it('by FLUSHALL under load: a new epoch, told once to each, that begins empty', async () => {
    const server = await startRedis();
    const client = new Redis(server.adminUrl);
    const fleet = new Fleet({ type: 'redis', url: server.url, decisionTimeout: '1s' });
    await fleet.begin(LOAD, LOAD, LOAD);
    await fleet.goOn(0.7);
    await client.flushall();
    const flushedBy = sharedMicros();
    for (const one of fleet.processes) one.offer(...SURGE);
    await until(() => fleet.processes.every((one) => epochsOf(one).length > 0));
    await fleet.goOn(0.2);
    for (const one of fleet.processes) one.offer(...LOAD);
    await fleet.goOn(0.3);
    const used = (await fleet.rateOf(LEAST_USED * CAPACITY)) / CAPACITY;
    expect(await viewLedger(client)).toMatchObject({ epoch: 2, nodes: 3 });
    expectAllAnswered(await fleet.close());
    client.disconnect();

    expect(fleet.processes.map(epochsOf)).toEqual([[2], [2], [2]]);
    expectWithinBound(fleet.admissions, NOTICED);
    expectNoNewBurst(fleet, flushedBy, CAPACITY);
    expectSwitchesOnce(fleet.processes, APPS);
    note({ used });
    expect(used).toBeGreaterThanOrEqual(LEAST_USED);
  });

  it('that a newcomer meets first costs one burst, until somebody calls who knows better', async () => {
    const server = await startRedis();
    const client = new Redis(server.adminUrl);
    const fleet = new Fleet({ type: 'redis', url: server.url, decisionTimeout: '1s' });
    const [newcomer] = await fleet.begin([]);
    const old = await fleet.begin(LOAD, LOAD);
    // Long enough for a state that the newcomer's cannot catch up with.
    await fleet.goOn(1);
    for (const one of old) one.pause();
    await client.flushall();
    newcomer!.offer(...SURGE);
    await until(() => tokensWithin(newcomer!.admissions, 0, Infinity) > DEPTH / 2);
    for (const one of old) one.resume();
    await until(() => fleet.processes.every((one) => epochsOf(one).length > 0));
    await fleet.goOn(0.5);
    expectAllAnswered(await fleet.close());
    client.disconnect();

    expect(fleet.processes.map(epochsOf)).toEqual([[2], [2], [2]]);
    expectWithinBound(fleet.admissions, DEPTH);
  });

  it('by promotion of a replica that lagged behind is noticed, and costs no burst', async () => {
    const redis = await startPrimaryWithReplica();
    const proxy = await startProxy({ targetPort: redis.primary.port });
    const fleet = new Fleet({ type: 'redis', url: proxy.url, decisionTimeout: '1s' });
    await fleet.begin(LOAD, LOAD, LOAD);
    await fleet.goOn(0.7);
    // From here on the replica hears nothing more; the nodes find it when the primary dies.
    await redis.promote();
    await fleet.goOn(0.4);
    await proxy.cut();
    await redis.primary.kill();
    proxy.redirect(redis.replica.port);
    const lostBy = sharedMicros();
    await proxy.restore();
    for (const one of fleet.processes) one.offer(...SURGE);
    await until(() => fleet.processes.every((one) => epochsOf(one).length > 0));
    await fleet.goOn(0.2);
    for (const one of fleet.processes) one.offer(...LOAD);
    await until(() => fleet.processes.every((one) => one.modesOf('shop').at(-1) !== 'offline'));
    await fleet.goOn(0.5);
    const used = (await fleet.rateOf(LEAST_USED * CAPACITY)) / CAPACITY;
    expectAllAnswered(await fleet.close());

    expect(fleet.processes.map(epochsOf)).toEqual([[2], [2], [2]]);
    expectWithinBoundAndShares(fleet.admissions, fleet.processes.length, NOTICED);
    const shares = SHARES_BURST + fleet.processes.length * SHARE_DEPTH;
    expectNoNewBurst(fleet, lostBy, CAPACITY + SHARES_PER_SECOND, shares);
    expectSwitchesOnce(fleet.processes, APPS);
    note({ used });
    expect(used).toBeGreaterThanOrEqual(LEAST_USED);
  });
});
