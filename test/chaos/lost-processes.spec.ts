import { Redis } from 'ioredis';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { startRedis, stopAll, until, type RedisProcess } from '../support/index.js';
import { expectAllAnswered, expectWithinBound } from './expectations.js';
import { CAPACITY, DEPTH, Fleet, QUOTA } from './fleet.js';
import { viewLedger, type LedgerView } from './ledger-view.js';
import { note } from './note.js';
import { sharedMicros } from './process/protocol.js';

/** The part of the capacity that the processes left must use. */
const LEAST_USED = 0.8;
/** The least that passes of 200 requests a second, well below the capacity. */
const LEAST_PER_SECOND = 150;

describe('a process that is lost', () => {
  let server: RedisProcess;
  let client: Redis;
  let store: { type: 'redis'; url: string; decisionTimeout: '1s' };

  beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);

  beforeEach(async () => {
    server = await startRedis();
    client = new Redis(server.adminUrl);
    store = { type: 'redis', url: server.url, decisionTimeout: '1s' };
  });

  afterEach(async () => {
    client.disconnect();
    await stopAll();
  });

  it('by kill -9 costs the others nothing: they take over, within the bound', async () => {
    const fleet = new Fleet(store);
    const loads = [2000, 500, 500].map((perSecond) => [{ app: 'shop', perSecond }]);
    const [victim, ...others] = await fleet.begin(...loads);
    await fleet.goOn(0.7);
    await until(async () => (await viewLedger(client)).outstanding > 0);
    await victim!.kill();
    for (const other of others) other.offer({ app: 'shop', perSecond: CAPACITY });
    const views: LedgerView[] = [];
    await until(async () => views.push(await viewLedger(client)) && views.at(-1)!.nodes === 2);
    const used = (await fleet.rateOf(LEAST_USED * CAPACITY)) / CAPACITY;
    views.push(await viewLedger(client));
    expectAllAnswered(await fleet.close());

    expectWithinBound(fleet.admissions);
    note({ used });
    expect(used).toBeGreaterThanOrEqual(LEAST_USED);
    expect(Math.min(...views.map(({ lowest }) => lowest))).toBeGreaterThanOrEqual(0);
    for (const { level, outstanding } of views)
      expect(level + outstanding).toBeLessThanOrEqual(DEPTH);
    expect(await viewLedger(client)).toMatchObject({ nodes: 0, outstanding: 0 });
  });

  // While it sleeps its lease ends, and the bucket fills. What it held would come on top of that.
  it('by SIGSTOP for longer than its lease wakes up without it, and recovers', async () => {
    const fleet = new Fleet(store);
    const sleeper = await fleet.start({ quota: { ...QUOTA, local: { reserveTarget: 100 } } });
    sleeper.offer({ app: 'shop', perSecond: 50 }, { app: 'search', perSecond: 50 });
    await until(async () => (await viewLedger(client)).outstanding > 150);
    sleeper.pause();
    const waker = await fleet.start();
    waker.offer({ app: 'shop', perSecond: 40 });
    const burst = [
      { app: 'shop', perSecond: 20_000 },
      { app: 'search', perSecond: 20_000 },
    ];
    sleeper.offer(...burst);
    await until(async () => (await viewLedger(client)).level > 0.9 * DEPTH);
    const wokenAt = sharedMicros();
    waker.offer(...burst);
    sleeper.resume();
    await until(() => sleeper.admissions.some(({ from }) => from > wokenAt));
    await fleet.goOn(0.3);
    for (const one of fleet.processes) one.offer({ app: 'shop', perSecond: 100 });
    await fleet.goOn(0.3);
    const perSecond = await fleet.rateOf(LEAST_PER_SECOND);
    expectAllAnswered(await fleet.close());

    expectWithinBound(fleet.admissions);
    // Well below the capacity both get all they ask for.
    note({ perSecond });
    expect(perSecond).toBeGreaterThanOrEqual(LEAST_PER_SECOND);
  });
});
