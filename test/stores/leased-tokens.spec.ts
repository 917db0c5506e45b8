import { Redis } from 'ioredis';
import { AlgorithmCode, type Limit } from '../../lib/algorithms/limit.js';
import { RedisKeys } from '../../lib/stores/redis/keys.js';
import { leasedTokens } from '../../lib/stores/redis/leased-tokens.js';
import { CallKind, type SharedLimit } from '../../lib/stores/remote-store.js';
import { LuaSide } from '../support/differential.js';
import { startRedis, stopAll } from '../support/index.js';
import { compileLimit } from '../support/limits.js';

/** The first instant of a generation. */
const START_MICROS = 1_700_000_000_000_000;
const GENERATION_MICROS = 1_000_000;
const START_GENERATION = START_MICROS / GENERATION_MICROS;
const HOUR_MICROS = 3_600_000_000;
const NOTHING = { used: 0, returned: 0, olderUsed: 0, olderReturned: 0 };

function limitOf(algorithm: AlgorithmCode, subWindows = 1): Limit {
  const figures = { rate: 1000, periodMs: 60_000, burst: 1000, maxDelayMs: Infinity };
  // Redis forgets by its own clock, which here runs on while the injected one stands still.
  return { ...compileLimit({ ...figures, algorithm, subWindows }), ttlMs: 1e9 };
}

// lib/stores/redis/leased-tokens reads the very bytes that lua/buckets.lua writes.
describe.each([
  ['without a revision', 0],
  ['with the limit of a revision', 3],
])('tokens on loan, read out of a bucket %s', (_, revision) => {
  let lua: LuaSide;
  let client: Redis;
  let buckets = 0;
  let shared: SharedLimit;

  beforeAll(async () => {
    const server = await startRedis();
    client = new Redis(server.adminUrl);
    lua = new LuaSide(server.url);
    await lua.ready();
  });

  beforeEach(() => {
    shared = { id: `b${buckets++}`, figures: limitOf(AlgorithmCode.TokenBucket), revision };
  });

  afterAll(async () => {
    client.disconnect();
    await lua.close();
    await stopAll();
  });

  async function lease(want: number, now: number, report = {}): Promise<void> {
    const generation = Math.floor(now / GENERATION_MICROS);
    const call = { limit: shared, key: 'k', want, report: { ...NOTHING, generation, ...report } };
    expect(await lua.lease(call, now)).toMatchObject({ granted: want });
  }

  const take = (cost: number, now: number) => lua.ask(CallKind.Take, shared, 'k', cost, now);

  async function leasedAt(...instants: number[]): Promise<number[]> {
    const raw = await client.getBuffer(new RedisKeys('differential').bucket(shared, 'k'));
    return instants.map((now) => leasedTokens(raw!, shared.figures, now));
  }

  it('are those of this generation and of the one before', async () => {
    await lease(100, START_MICROS);
    await lease(30, START_MICROS + GENERATION_MICROS);
    expect(await leasedAt(START_MICROS + 1.9 * GENERATION_MICROS)).toEqual([130]);
    expect(await leasedAt(START_MICROS + 2 * GENERATION_MICROS)).toEqual([30]);
    expect(await leasedAt(START_MICROS + 3 * GENERATION_MICROS)).toEqual([0]);
  });

  it('are less by what was reported as used and returned', async () => {
    await lease(100, START_MICROS);
    await lease(0, START_MICROS + 1000, { used: 7, returned: 20 });
    expect(await leasedAt(START_MICROS + 1000)).toEqual([73]);
    await lease(10, START_MICROS + GENERATION_MICROS, { olderUsed: 3 });
    expect(await leasedAt(START_MICROS + GENERATION_MICROS)).toEqual([80]);
  });

  it('are none where all came back, and none of a bucket that lent nothing', async () => {
    await take(5, START_MICROS);
    expect(await leasedAt(START_MICROS)).toEqual([0]);
    await lease(100, START_MICROS + 1000);
    await take(5, START_MICROS + 2000);
    expect(await leasedAt(START_MICROS + 2000)).toEqual([100]);
    await lease(0, START_MICROS + 3000, { returned: 100 });
    expect(await leasedAt(START_MICROS + 3000)).toEqual([0]);
  });

  it('live on through a clock that steps back, by generations of their own', async () => {
    await lease(100, START_MICROS + 0.5 * GENERATION_MICROS);
    const back = START_MICROS - HOUR_MICROS + 0.2 * GENERATION_MICROS;
    expect(await leasedAt(back)).toEqual([100]);
    await take(1, back);
    // The bucket's own time goes on from half a generation.
    const instants = [0.4, 0.6, 1.4, 1.6].map((n) => back + n * GENERATION_MICROS);
    expect(await leasedAt(...instants)).toEqual([100, 100, 100, 0]);
    await lease(30, instants[1]!, { generation: START_GENERATION + 1 });
    expect(await leasedAt(...instants.slice(1))).toEqual([130, 130, 30]);
  });

  it('are not read out of a window that happens to be as long', async () => {
    shared = { ...shared, figures: limitOf(AlgorithmCode.SlidingWindow, 5) };
    await take(5, START_MICROS);
    const raw = await client.getBuffer(new RedisKeys('differential').bucket(shared, 'k'));
    expect(raw).toHaveLength(revision === 0 ? 72 : 113);
    expect(await leasedAt(START_MICROS)).toEqual([0]);
  });
});
