import { Redis } from 'ioredis';
import { type QuotaOptions, type StoreInput } from 'nestjs-weir';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { freePort } from '../support/free-port.js';
import { startProxy, startRedis, stopAll, until, type RedisProcess } from '../support/index.js';
import { deepestBurst, type Admission } from './admissions.js';
import { expectAllAnswered } from './expectations.js';
import { Fleet } from './fleet.js';
import { note } from './note.js';
import { sharedMicros } from './process/protocol.js';

const GUARANTEED = 500;
const QUOTA = {
  clusterId: 'chaos',
  cluster: { capacity: 1000 },
  apps: { shop: { guaranteed: GUARANTEED }, search: { guaranteed: 100 } },
  maxCost: 2,
} satisfies QuotaOptions;
/** The share of the app, for all processes together: nine tenths of the guarantee, for B / C as much at once. */
const SHARE = 0.9 * GUARANTEED;
const SHARE_BURST = SHARE * 0.2;
const PROCESSES = 4;
/** Three times the guarantee, of all of them. */
const SURGE = { app: 'shop', perSecond: (3 * GUARANTEED) / PROCESSES };
/** A fiftieth of a guarantee, ten at a time: four times a second. */
const BUNCHED_QUOTA = {
  ...QUOTA,
  cluster: { capacity: 4 * QUOTA.cluster.capacity },
  apps: { shop: { guaranteed: 4 * GUARANTEED } },
} satisfies QuotaOptions;
const BUNCHES = { app: 'shop', perSecond: (4 * GUARANTEED) / 50, atOnce: 10 };
const BUNCHED_SECONDS = 2;
/** Time for which processes do without Redis. */
const AWAY_SECONDS = 1.5;
/** A second after a step of the clock; how close to the guarantee is for a machine that has nothing else to do. */
const LEAST_AFTER_STEP = GUARANTEED / 2;
const IDLE = Array.from({ length: PROCESSES }, () => []);
/** Processes start slowly on a busy machine. */
const TIMEOUT_MS = 60_000;
const PATIENT = { timeoutMs: 60_000 };
const NODES = 'weir:{chaos}:nodes';

function expectWithinShares(all: readonly Admission[]): void {
  const burst = deepestBurst(all, SHARE);
  const bound = SHARE_BURST + PROCESSES * QUOTA.maxCost;
  note({ burst, bound, admitted: all.length });
  expect(all.length).toBeGreaterThan(SHARE / 2);
  expect(burst).toBeLessThanOrEqual(bound + 1e-6);
}

describe('processes whose Redis is away', () => {
  let server: RedisProcess;

  beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);

  afterEach(stopAll);

  /** Each has heard of all the others: who shows itself twice has had the answer to the first time. */
  async function allKnown(client: Redis): Promise<void> {
    const seen = async (): Promise<Map<string, number>> => {
      const pairs = await client.zrange(NODES, 0, '-1', 'WITHSCORES');
      const even = pairs.filter((_, i) => i % 2 === 0);
      return new Map(even.map((member, i) => [member, Number(pairs[2 * i + 1])]));
    };
    const together = await until(async () => {
      const all = await seen();
      return all.size === PROCESSES ? all : undefined;
    }, PATIENT);
    let last = Math.max(...together.values());
    for (let time = 0; time < 2; time++) {
      const all = await until(async () => {
        const now = await seen();
        return Math.min(...now.values()) > last ? now : undefined;
      }, PATIENT);
      last = Math.max(...all.values());
    }
  }

  it(
    'admit their shares of the guarantee, also where each was alone when it last called',
    async () => {
      server = await startRedis();
      const fleet = new Fleet({ type: 'redis', url: server.url }, QUOTA);
      await fleet.begin(...IDLE);
      for (const one of fleet.processes) {
        one.offer({ app: 'shop', perSecond: 50 });
        await until(() => one.admissions.length > 0);
        one.offer();
      }
      const client = new Redis(server.adminUrl);
      await allKnown(client);
      client.disconnect();
      await server.kill();
      const from = sharedMicros();
      for (const one of fleet.processes) one.offer(SURGE);
      await fleet.goOn(AWAY_SECONDS);
      expectAllAnswered(await fleet.close());
      expectWithinShares(fleet.admissions.filter((one) => one.from > from));
    },
    TIMEOUT_MS,
  );

  it(
    'admit no more if it comes back without its data and is gone before they have all been counted',
    async () => {
      server = await startRedis();
      const fleet = new Fleet({ type: 'redis', url: server.url }, QUOTA);
      await fleet.begin(...IDLE);
      let client = new Redis(server.adminUrl);
      await allKnown(client);
      client.disconnect();
      await server.restart();
      client = new Redis(server.adminUrl);
      await until(async () => (await client.zcard(NODES)) > 0, PATIENT);
      client.disconnect();
      await server.kill();
      const from = sharedMicros();
      for (const one of fleet.processes) one.offer(SURGE);
      await fleet.goOn(AWAY_SECONDS);
      expectAllAnswered(await fleet.close());
      expectWithinShares(fleet.admissions.filter((one) => one.from > from));
    },
    TIMEOUT_MS,
  );

  it(
    'admit no more if they are started meanwhile and are told how many they are',
    async () => {
      const store: StoreInput = { type: 'redis', url: `redis://127.0.0.1:${await freePort()}` };
      const fleet = new Fleet(store, { ...QUOTA, local: { nodes: PROCESSES } });
      await Promise.all(IDLE.map(() => fleet.start({ startsCold: true })));
      for (const one of fleet.processes) one.offer(SURGE);
      await fleet.goOn(AWAY_SECONDS);
      expectAllAnswered(await fleet.close());
      expectWithinShares(fleet.admissions);
    },
    TIMEOUT_MS,
  );

  it('let requests pass that come ten at once at a fiftieth of the guarantee', async () => {
    server = await startRedis();
    const fleet = new Fleet({ type: 'redis', url: server.url }, BUNCHED_QUOTA);
    const one = await fleet.start();
    await server.kill();
    one.offer(BUNCHES);
    await fleet.goOn(BUNCHED_SECONDS);
    const totals = await fleet.close();
    expectAllAnswered(totals);
    note(totals[0]!);
    expect(totals[0]!.asked).toBeGreaterThanOrEqual(40);
    expect(totals[0]!.admitted).toBeGreaterThanOrEqual(0.99 * totals[0]!.asked);
  });

  it('also where Redis is there, and every reply is too late', async () => {
    server = await startRedis();
    const proxy = await startProxy({ targetPort: server.port });
    const fleet = new Fleet({ type: 'redis', url: proxy.url }, BUNCHED_QUOTA);
    const one = await fleet.start();
    // The deadline of a decision is 20 ms.
    proxy.delayReplies(25);
    one.offer(BUNCHES);
    await fleet.goOn(BUNCHED_SECONDS);
    const totals = await fleet.close();
    expectAllAnswered(totals);
    note(totals[0]!);
    expect(totals[0]!.asked).toBeGreaterThanOrEqual(40);
    expect(totals[0]!.admitted).toBe(totals[0]!.asked);
  });
});

describe('a Redis whose clock steps', () => {
  beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);

  afterEach(stopAll);

  it('back by 5 s, and then by an hour: the quota flows on at once, and no faster', async () => {
    const server = await startRedis({ clock: 'stepped' });
    const fleet = new Fleet({ type: 'redis', url: server.url, decisionTimeout: '10s' }, QUOTA);
    await fleet.begin([SURGE], [SURGE]);
    await fleet.goOn(1);
    const rates = [];
    for (const stepMs of [-5000, -3_600_000]) {
      server.stepClock(stepMs);
      await fleet.goOn(1);
      rates.push(await fleet.rateOf(LEAST_AFTER_STEP));
    }
    expectAllAnswered(await fleet.close());
    const all = fleet.admissions;
    note({ rates, burst: deepestBurst(all, GUARANTEED) });
    expect(all.every(({ source }) => source !== 'fallback')).toBe(true);
    for (const rate of rates) expect(rate).toBeGreaterThanOrEqual(LEAST_AFTER_STEP);
    expect(deepestBurst(all, QUOTA.cluster.capacity)).toBeLessThanOrEqual(201);
    expect(deepestBurst(all, GUARANTEED)).toBeLessThanOrEqual(GUARANTEED + 1);
  });
});
