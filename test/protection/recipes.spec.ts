import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { createPool, type Pool, type RowDataPacket } from 'mysql2/promise';
import {
  BreakerOptions,
  BulkheadOptions,
  Protection,
  SlowCallOptions,
  type ResourceInput,
  type SlowCall,
} from 'nestjs-weir';
import { tableBelow } from '../package/markdown.js';
import { startMariadb } from '../support/brokers.js';
import { startRedis, stopAll, until, type RedisProcess } from '../support/index.js';
import { closeAtEnd } from '../support/processes.js';
import { Cache, CLIENT_OPTIONS } from './recipes/cache.js';
import { Database } from './recipes/database.js';
import { Products, type Product } from './recipes/products.js';
import { HttpError, isFailure, StockClient } from './recipes/stock-client.js';

/** Where the test is about an answer, and the machine may be slow. */
const PATIENT = '60s';
/** Where nothing answers, so that the deadline always comes. */
const SHORT = 50;

const pageOf = (name: string): string =>
  readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), 'utf8');

afterAll(stopAll);

describe('the pages on protection', () => {
  it.each(['cache', 'products', 'stock-client', 'database'])(
    'shows what is run here: %s.ts',
    (name) => {
      const code = readFileSync(new URL(`./recipes/${name}.ts`, import.meta.url), 'utf8');
      expect(pageOf('protection-recipes')).toContain(`\`\`\`ts\n${code}\`\`\``);
    },
  );

  it.each([
    ['bulkhead', 'Bulkhead', new BulkheadOptions(), ['maxQueue']],
    ['circuit-breaker', 'Breaker', new BreakerOptions(), ['slowCall', 'probeLease']],
    ['protection', 'Slow calls', new SlowCallOptions(), []],
  ])('have every option and its default: %s, %s', (page, heading, defaults, withoutDefault) => {
    const table = tableBelow(pageOf(page), heading);
    expect([...table.keys()].sort()).toEqual([...Object.keys(defaults), ...withoutDefault].sort());
    for (const [name, value] of Object.entries(defaults)) {
      const literal = typeof value === 'string' ? `'${value}'` : String(value);
      expect(`${name}: ${table.get(name)?.[0]}`).toBe(`${name}: \`${literal}\``);
    }
  });
});

describe('ioredis', () => {
  let server: RedisProcess;
  let redis: Redis;

  beforeAll(async () => {
    server = await startRedis();
    // Of a connection that is gone already, ioredis waits for the end, by default for two seconds.
    const options = { ...CLIENT_OPTIONS, lazyConnect: true, disconnectTimeout: 10 };
    redis = new Redis(server.adminUrl, options);
    redis.on('error', () => undefined);
    closeAtEnd(async () => redis.disconnect());
    await redis.connect();
  });

  const cacheWith = (options: ResourceInput): { cache: Cache; protection: Protection } => {
    const bigCache = { deadline: PATIENT, bulkhead: { maxInFlight: 5 } } as const;
    const protection = new Protection({ cache: options, bigCache });
    return { cache: new Cache(redis, protection), protection };
  };

  it('keeps values, refuses big ones, and keeps those in parts', async () => {
    const { cache, protection } = cacheWith({ preset: 'redis', deadline: PATIENT });
    await cache.set('a', 'one', 60_000);
    expect((await cache.get('a'))?.toString()).toBe('one');
    expect(await cache.get('b')).toBeNull();

    const big = randomBytes(3 * 1024 * 1024 + 7);
    await expect(cache.set('page', big, 60_000)).rejects.toMatchObject({ code: 'BIG_VALUE' });
    await cache.setBig('page', big, 60_000);
    expect((await cache.getBig('page'))?.equals(big)).toBe(true);
    expect(protection.stats()).toMatchObject({ cache: { bigValues: 1 }, bigCache: { calls: 13 } });

    const [partKey] = await redis.keys('{page}:*');
    await redis.del(partKey!);
    expect(await cache.getBig('page')).toBeUndefined();
    expect(await cache.getBig('none')).toBeUndefined();
  });

  it('finds products in Redis, in the process, or in the database, each once', async () => {
    const protection = new Protection({
      cache: { preset: 'redis', deadline: PATIENT },
      db: { preset: 'database', deadline: PATIENT, slow: false },
    });
    const kept = new Map<string, Product>([
      ['1', { id: '1', name: 'kettle' }],
      ['2', { id: '2', name: 'x'.repeat(2_000_000) }],
    ]);
    const asked: string[] = [];
    const load = (id: string): Promise<Product | undefined> => {
      asked.push(id);
      return Promise.resolve(kept.get(id));
    };
    const make = (): Products => new Products(redis, load, protection);
    const products = make();
    // At the same time one asks for all; afterwards Redis knows it.
    const many = await Promise.all(Array.from({ length: 50 }, () => products.find('1')));
    expect(new Set(many)).toEqual(new Set([kept.get('1')]));
    expect([await products.find('none'), await products.find('2')]).toEqual([
      undefined,
      kept.get('2'),
    ]);
    await until(async () => (await redis.keys('product:*')).length === 3);
    expect(await redis.mget('product:none', 'product:2')).toEqual(['absent', 'too big']);
    expect(asked).toEqual(['1', 'none', '2']);
    // Another process finds in Redis what is there, and loads what is too big for it.
    const other = make();
    for (const id of ['1', 'none', '2', '2']) expect(await other.find(id)).toEqual(kept.get(id));
    expect(asked).toEqual(['1', 'none', '2', '2']);
  });

  it('answers in time when Redis stands still, leaves it alone, and comes back', async () => {
    const breaker = { minimumCalls: 3, openFor: 50, successes: 1 };
    const { cache, protection } = cacheWith({ preset: 'redis', deadline: SHORT, breaker });
    server.pause();
    try {
      for (let n = 0; n < 3; n++) {
        await expect(cache.get('a')).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
      }
      expect(protection.stats().cache!.breaker).toMatchObject({ openings: 1 });
      await until(() =>
        cache.get('a').catch((error: { code: string }) => error.code === 'BREAKER_OPEN'),
      );
    } finally {
      server.resume();
    }
    await until(() => protection.stats().cache!.inFlight === 0, { what: 'all slots' });
    await until(() => cache.get('a'), { what: 'an answer again' });
    await until(() => protection.stats().cache!.breaker?.state === 'closed');
  });

  it('fails at once when the connection is gone, and nothing waits unseen', async () => {
    const { cache, protection } = cacheWith({ deadline: PATIENT, breaker: { minimumCalls: 3 } });
    await server.kill();
    await until(() => redis.status !== 'ready');
    for (let n = 0; n < 3; n++) await expect(cache.get('a')).rejects.toThrow();
    await expect(cache.get('a')).rejects.toMatchObject({ code: 'BREAKER_OPEN' });
    expect(protection.stats().cache).toMatchObject({ failed: 3, inFlight: 0, timedOut: 0 });
  });
});

describe('HTTP', () => {
  const held: ServerResponse[] = [];
  const hungUp: string[] = [];
  let url: string;
  let requests = 0;

  beforeAll(async () => {
    const server = createServer((request, response) => {
      requests++;
      const id = request.url!.slice('/stock/'.length);
      response.once('close', () => response.writableFinished || hungUp.push(id));
      if (/^\d+$/.test(id)) response.writeHead(Number(id)).end('7');
      else held.push(response);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    closeAtEnd(async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
  });

  const clientWith = (options: Exclude<ResourceInput, string>) => {
    const protection = new Protection({ stock: { isFailure, ...options } });
    return { client: new StockClient(url, protection), stats: () => protection.stats().stock! };
  };

  it('hangs up when the deadline has passed, and the slot is free', async () => {
    const { client, stats } = clientWith({ deadline: SHORT, bulkhead: { maxInFlight: 1 } });
    // On a slow machine the first ones may be over before they have reached the server.
    await until(
      async () => {
        await expect(client.stockOf('slow')).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
        return hungUp.includes('slow');
      },
      { what: 'the server to see it' },
    );
    await until(() => stats().inFlight === 0, { what: 'the slot' });
    expect(stats().overdue).toBe(0);
  });

  it('hangs up when the caller does, which is no failure', async () => {
    const { client, stats } = clientWith({ deadline: PATIENT, breaker: { minimumCalls: 1 } });
    const controller = new AbortController();
    const before = held.length;
    const ended = client.stockOf('left', controller.signal).catch((error: unknown) => error);
    await until(() => held.length > before, { what: 'the server to have it' });
    controller.abort('left');
    expect(await ended).toBe('left');
    await until(() => stats().inFlight === 0);
    expect(stats()).toMatchObject({ aborted: 1, breaker: { state: 'closed', calls: 0 } });
  });

  it('tells answers from failures', async () => {
    const breaker = { minimumCalls: 6, errorRate: 0.5 };
    const { client, stats } = clientWith({ deadline: PATIENT, breaker });
    expect(await client.stockOf('200')).toBe(7);
    await expect(client.stockOf('404')).rejects.toBeInstanceOf(HttpError);
    await expect(client.stockOf('429')).rejects.toBeInstanceOf(HttpError);
    expect(stats().breaker).toMatchObject({ calls: 2, failures: 0 });
    for (let n = 0; n < 4; n++) await expect(client.stockOf('503')).rejects.toThrow('503');
    const known = requests;
    await expect(client.stockOf('200')).rejects.toMatchObject({ code: 'BREAKER_OPEN' });
    expect(requests).toBe(known);
  });
});

describe('mysql2', () => {
  const CONNECTIONS = 2;
  let pool: Pool;
  let killers: Pool;

  beforeAll(async () => {
    const { port } = await startMariadb();
    const access = { host: '127.0.0.1', port, user: 'root' };
    pool = createPool({ ...access, connectionLimit: CONNECTIONS });
    killers = createPool({ ...access, connectionLimit: 1 });
    closeAtEnd(async () => {
      await pool.end();
      await killers.end();
    });
  });

  const databaseWith = (options: ResourceInput) => {
    const protection = new Protection({ db: options });
    const slow: SlowCall[] = [];
    protection.on('slow', (call) => slow.push(call));
    const database = new Database(pool, killers, protection);
    return { database, slow, stats: () => protection.stats().db! };
  };

  /** The number of queries of such a text that the server is busy with, but for this one. */
  const busyWith = async (text: string): Promise<number> => {
    const sql =
      'SELECT COUNT(*) AS n FROM information_schema.processlist WHERE info LIKE ? AND id <> CONNECTION_ID()';
    const [rows] = await killers.query<RowDataPacket[]>(sql, [`%${text}%`]);
    return Number(rows[0]!.n);
  };

  it('answers, and gives connections back', async () => {
    const { database, stats } = databaseWith({ preset: 'database', deadline: PATIENT });
    const ask = (n: number) => database.query('SELECT ? + 1 AS sum', [n]);
    const answers = await Promise.all(Array.from({ length: 10 }, (_, n) => ask(n)));
    expect(answers.map(([row]) => Number(row!.sum))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    await expect(database.query('SELECT nonsense')).rejects.toMatchObject({
      code: 'ER_BAD_FIELD_ERROR',
    });
    expect(stats()).toMatchObject({ succeeded: 10, failed: 1, inFlight: 0 });
  });

  it('a query over its deadline is ended on the server, and told of with its text', async () => {
    const { database, slow, stats } = databaseWith({
      preset: 'database',
      deadline: 300,
      bulkhead: { maxInFlight: CONNECTIONS },
      slow: { threshold: 200, maxLabel: 20 },
    });
    const slowOnes = [1, 2].map(() => database.query('SELECT SLEEP(600), "of the shop"'));
    const ended = await Promise.allSettled(slowOnes);
    expect(ended).toMatchObject([1, 2].map(() => ({ reason: { code: 'DEADLINE_EXCEEDED' } })));
    await until(async () => (await busyWith('SLEEP(600)')) === 0, { what: 'the queries to end' });
    await until(() => stats().inFlight === 0, { what: 'the slots' });
    expect(slow).toMatchObject([1, 2].map(() => ({ label: 'SELECT SLEEP(600), "…' })));
    // Both connections were killed; the pool has others now.
    const { database: patient } = databaseWith({ deadline: PATIENT });
    expect(await patient.query('SELECT 1 AS one')).toEqual([{ one: 1 }]);
  });

  it('is well while it answers', async () => {
    expect(await databaseWith({}).database.isWell()).toBe(true);
    const nowhere = createPool({ host: '127.0.0.1', port: 1, connectionLimit: 1 });
    const away = new Database(pool, nowhere, new Protection({}));
    await expect(away.isWell()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await nowhere.end();
  });

  it('a caller that leaves ends its query as well', async () => {
    const { database, stats } = databaseWith({ deadline: PATIENT });
    const controller = new AbortController();
    const ended = database.query('SELECT SLEEP(700)', [], controller.signal);
    const seen = expect(ended).rejects.toBe('left');
    await until(async () => (await busyWith('SLEEP(700)')) === 1, { what: 'the query to begin' });
    controller.abort('left');
    await seen;
    await until(async () => (await busyWith('SLEEP(700)')) === 0, { what: 'the query to end' });
    await until(() => stats().inFlight === 0);
  });
});
