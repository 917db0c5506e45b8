import { Redis } from 'ioredis';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { startRedis, stopAll, until, type RedisProcess } from '../support/index.js';
import { expectAllAnswered, expectSwitchesOnce, expectWithinBound } from './expectations.js';
import { CAPACITY, Fleet, QUOTA } from './fleet.js';
import { viewLedger } from './ledger-view.js';
import { type LoadProcess } from './load-process.js';
import { note } from './note.js';

/** The least part of the capacity that must be used. */
const LEAST_USED = 0.9;
const LEAST_USED_BY_TWINS = 0.8;

/**
 * The part of the requests decided in process, in the middle one of all reports: a process that lost the
 * processor for longer than its leases live says nothing about them.
 */
function usualShare(processes: readonly LoadProcess[]): number {
  const shares = processes.flatMap(({ localShares }) => localShares).sort((a, b) => a - b);
  return shares[Math.floor(shares.length / 2)]!;
}

describe('four processes that share one quota', () => {
  let server: RedisProcess;
  let client: Redis;

  beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);

  beforeEach(async () => {
    server = await startRedis();
    client = new Redis(server.adminUrl);
  });

  afterEach(async () => {
    client.disconnect();
    await stopAll();
  });

  it('keep to the capacity in every span, use it, and decide in process', async () => {
    const fleet = new Fleet({ type: 'redis', url: server.url, decisionTimeout: '1s' });
    const parts = [0.6, 0.25, 0.1, 0.05];
    await fleet.begin(
      ...parts.map((part) => [
        { app: 'shop', perSecond: 2000 * part },
        { app: 'search', perSecond: 200 * part, cost: 5 },
      ]),
    );
    await fleet.goOn(0.5);
    await fleet.goOn(1);
    const used = (await fleet.rateOf(LEAST_USED * CAPACITY)) / CAPACITY;
    const totals = await fleet.close();

    expectWithinBound(fleet.admissions);
    expectAllAnswered(totals);
    expectSwitchesOnce(fleet.processes, ['shop', 'search']);
    const local = usualShare(fleet.processes);
    note({
      used,
      local,
      waits: totals.map((one) => one.longestWaitMicros),
    });
    expect(used).toBeGreaterThanOrEqual(LEAST_USED);
    expect(local).toBeGreaterThanOrEqual(0.95);
    expect(await viewLedger(client)).toMatchObject({ outstanding: 0, nodes: 0, lowest: 0 });
  });

  it('are told apart by what they are, not by name, and by no wall clock', async () => {
    const fleet = new Fleet({ type: 'redis', url: server.url, decisionTimeout: '1s' });
    const twins = await Promise.all([
      fleet.start({ nodeId: 'twin' }),
      fleet.start({ nodeId: 'twin', wallClockStepsMs: 3_600_000 }),
    ]);
    for (const twin of twins) twin.offer({ app: 'shop', perSecond: CAPACITY });
    await fleet.goOn(0.5);
    const used = (await fleet.rateOf(LEAST_USED_BY_TWINS * CAPACITY)) / CAPACITY;
    expect(await viewLedger(client)).toMatchObject({ nodes: 2, epoch: 1 });
    const totals = await fleet.close();

    expectWithinBound(fleet.admissions);
    expectAllAnswered(totals);
    note({ used, twins: twins.map((one) => one.admissions.length) });
    for (const twin of twins) expect(twin.admissions.length).toBeGreaterThan(500);
    expect(used).toBeGreaterThanOrEqual(LEAST_USED_BY_TWINS);
  });

  it('give back all they hold when they stop, while the others go on', async () => {
    const fleet = new Fleet(
      { type: 'redis', url: server.url, decisionTimeout: '1s' },
      { ...QUOTA, apps: { shop: QUOTA.apps.shop }, local: { reserveTarget: 60 } },
    );
    const few = [{ app: 'shop', perSecond: 100 }];
    const [stays, ...stops] = await fleet.begin(few, few, few);
    await until(async () => (await viewLedger(client)).outstanding > 120);
    expectAllAnswered(await Promise.all(stops.map((one) => one.close())));
    const left = await viewLedger(client);
    expect(left.nodes).toBe(1);
    expect(left.outstanding).toBeLessThanOrEqual(60);
    expectAllAnswered([await stays!.close()]);
    expect(await viewLedger(client)).toMatchObject({ nodes: 0, outstanding: 0 });
    expectWithinBound(fleet.admissions);
  });
});
