import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { weirCommand } from '../cli/weir-command.js';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { startRedis, stopAll, until, type RedisProcess } from '../support/index.js';
import { makeTempDir } from '../support/processes.js';
import { newAddress, ShopNode, type Answer } from './shop-node.js';

let redis: RedisProcess;
let a: ShopNode;
let b: ShopNode;

beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
beforeAll(async () => {
  redis = await startRedis();
  [a, b] = await Promise.all([ShopNode.start(redis.url, 'a'), ShopNode.start(redis.url, 'b')]);
});
afterAll(stopAll);

const weir = (...args: string[]) => weirCommand(...args, '--url', redis.url);

/** A command that does what it is told, and what it says. */
async function done(...args: string[]): Promise<string> {
  const { code, out, err } = await weir(...args);
  expect([code, err]).toEqual([0, '']);
  return out;
}

let callers = 0;
const newUser = (): Record<string, string> => ({ 'x-user': `user-${callers++}` });

/** So many at once, by turns from both processes. */
const atOnce = (
  count: number,
  path: string,
  headersOf: () => Record<string, string> = newUser,
  method = 'GET',
): Promise<Answer[]> =>
  Promise.all(
    Array.from({ length: count }, (_, i) => (i % 2 ? a : b).ask(path, headersOf(), method)),
  );

const statuses = (answers: readonly Answer[]): number[] => [
  ...new Set(answers.map(({ status }) => status)),
];
const passed = (answers: readonly Answer[]): number =>
  answers.filter(({ status }) => status < 300).length;
const isFresh = ({ status, headers }: Answer): boolean =>
  status === 200 && headers.get('x-degraded') === null;
/** Over a limit, whether a cache had another answer or not. */
const isRefused = ({ status, headers }: Answer): boolean =>
  status === 429 || headers.get('x-degraded')?.includes('reason=limited') === true;
const refusers = (answers: readonly Answer[]): unknown =>
  answers.find(({ status }) => status === 429)?.body['violated-policies'];
const policyOf = async (node: ShopNode, headers: Record<string, string>): Promise<string> =>
  (await node.ask('/product/1', { ...newUser(), ...headers })).headers.get('ratelimit-policy') ??
  '';

/** 10 a minute for both processes together; each by itself would let 20 pass. */
function expectShared(count: number): void {
  expect(count).toBeGreaterThanOrEqual(10);
  expect(count).toBeLessThan(20);
}

/** Troubles of this story, and no others. */
const TOLD = [
  /^(error critical|warn warning) (errorRate|storeAway|nodeSilent|configBehind|breakerOpen|degraded\.level[1-4]|levelHeld|relapse|denialRise|slowCalls): /,
  /^warn "page" (is degraded|has failed again)/,
  /^warn Breaker of "db": /,
  /^warn \d+ requests? without an answer \((BREAKER_OPEN|DEADLINE_EXCEEDED)\), the last one by resource "(db|cache)"/,
  /^warn (Slow call|\d+ more slow calls?) of "db"/,
  /^error (Resource "(db|cache)"|ShopController\.page) failed/,
  /^warn The store is lost: /,
  /^warn App "shop" is offline: /,
  /^(warn|error) .*revision \d+ stays in use/,
];

/** The tests are the chapters of one story: each goes on where the one before it ended. */
describe('a shop of two processes', () => {
  it('slows down and refuses an address at the door', async () => {
    const address = newAddress();
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => a.ask('/stock/1', { 'x-forwarded-for': address })),
    );
    expect(statuses(answers).sort()).toEqual([200, 429]);
    expect(passed(answers)).toBeGreaterThanOrEqual(3);
    expect(refusers(answers)).toEqual(['ip']);
  });

  it('limits users, merchants, products and paths, and the app by its quota, in one request', async () => {
    expect((await policyOf(a, { 'x-merchant': 'm' })).split(', ').sort()).toEqual([
      '"ip";q=3;w=1',
      '"merchant";q=100;w=60',
      '"product";q=400;w=60',
      '"uri";q=5000;w=1',
      '"user";q=10;w=60',
    ]);
    const answers = await atOnce(30, '/product/1', () => ({ 'x-user': 'ann', 'x-merchant': 'm' }));
    // Over the limit the page is answered as well where a cache has it, only not afresh.
    expect([200, 429]).toEqual(expect.arrayContaining(statuses(answers)));
    expectShared(answers.filter(isFresh).length);
    // Requests that the user's limit denied cost the merchant nothing; one more had asked for the headers.
    const charged = 1 + answers.filter((answer) => !isRefused(answer)).length;
    const left = JSON.parse(await done('key', 'get', 'merchant', 'm', '--json')) as {
      tiers: { tier: string; remaining: number }[];
    };
    expect(left.tiers.find(({ tier }) => tier === 'C')?.remaining).toBeGreaterThanOrEqual(
      100 - charged,
    );
    expect(await done('status')).toMatch(/shop/);
    const orders = await atOnce(30, '/order', () => ({ 'x-user': 'ann' }), 'POST');
    expectShared(passed(orders));
    expect(refusers(orders)).toEqual(['order']);
  });

  it('gives a user anew what it has used up, by command', async () => {
    expect(await done('key', 'get', 'user', 'ann')).toMatch(/normal +yes +10 +\d /);
    await done('key', 'reset', 'user', 'ann');
    await until(async () => isFresh(await a.ask('/product/1', { 'x-user': 'ann' })));
  });

  it('goes on without its cache', async () => {
    // On a busy machine a call may be too slow for the breaker of the database, which opens for a moment.
    const stockIs = (where: string): Promise<unknown> =>
      until(async () => (await a.ask('/stock/7')).body['stock'] === where);
    await a.slow('cache', 500);
    await stockIs('from the database');
    await a.slow('database', 500);
    await stockIs('from the database');
    await a.slow('cache', 0);
    await a.slow('database', 0);
    await stockIs('from the cache');
  });

  it('is warmed by command before the promotion', async () => {
    expect(await done('warm', 'page', '--by', 'ann')).toMatch(/shop +page +3 +0 +[ab]\n$/);
  });

  it('answers from its caches while the database is slow, and takes orders', async () => {
    // Each process has it in its own cache as well: a busy machine may be late with what Redis has.
    for (const node of [a, b]) {
      await until(async () => isFresh(await node.ask('/product/2', newUser())));
    }
    for (const node of [a, b]) await node.slow('database', 500);
    const hasTold = (pattern: RegExp): boolean =>
      [a, b].every(({ lines }) => lines.some((line) => pattern.test(line)));
    const answers: Answer[] = [];
    await until(async () => {
      answers.push(...(await atOnce(20, '/product/2')));
      return hasTold(/^warn "page" is degraded, by /);
    });
    // A page that is degraded spares the database; what has no other resource goes on until the breaker opens.
    await until(async () => {
      const reviews = await atOnce(20, '/reviews/2');
      expect(reviews.map(({ body }) => body)).toEqual(reviews.map(() => ({ reviews: [] })));
      return hasTold(/^warn Breaker of "db": closed → open \(\d+ failed, \d+ slow of \d+\)$/);
    });
    expect(statuses(answers)).toEqual([200]);
    expect(new Set(answers.map(({ body }) => JSON.stringify(body)))).toEqual(
      new Set(['{"id":"2","price":10}']),
    );
    expect(answers.at(-1)!.headers.get('x-degraded')).toMatch(/^level=[12]; reason=/);
    const unknown = await a.ask('/product/99', newUser());
    expect([unknown.status, unknown.body['detail']]).toEqual([503, 'The shop is busy.']);
    expect((await a.ask('/order', newUser(), 'POST')).status).toBe(201);
    const failed = /^error .*failed, and its caller got another answer: /;
    await Promise.all([a.line(failed), b.line(failed)]);
    await a.line(/^warn Slow call of "db", \d+ ms/);
  });

  it('recovers by itself, by probes and stages, once the database does', async () => {
    for (const node of [a, b]) await node.slow('database', 0);
    const isWell = ({ lines }: ShopNode): boolean =>
      lines.some((line) => /^log "page" is back to normal, after /.test(line));
    await until(
      async () => {
        expect(statuses(await atOnce(20, '/product/3'))).toEqual([200]);
        return isWell(a) && isWell(b);
      },
      { timeoutMs: 120_000 },
    );
    for (const node of [a, b]) {
      await node.line(/^log "page" answers probes: 10 % of its traffic now, more by stages\.$/);
    }
  });

  it('has its promotion prepared, staged and switched while other changes go on', async () => {
    const file = join(makeTempDir(), 'promo.yaml');
    writeFileSync(
      file,
      'profiles:\n  promo:\n    policies:\n      merchant: { tiers: { S: 5000/min } }\n' +
        '      user: { tiers: { normal: 5/min } }\n',
    );
    expect((await weirCommand('config', 'check', '--partial', file)).code).toBe(0);
    expect(await done('config', 'diff', file)).toContain('profiles');
    await done('config', 'set', '--patch', file, '--by', 'ann');
    const at = new Date(Date.now() + 2500).toISOString();
    await done('config', 'set', 'profile', 'promo', '--at', at, '--by', 'ann');
    expect(await done('config', 'staged')).toContain('profile');
    expect(await done('status')).toMatch(/update \d+ by ann takes effect at /);
    expect(await done('config', 'set', 'policies.order.rate', '20/min')).toMatch(/^revision /);
    for (const node of [a, b]) {
      const promo = await until(async () => {
        const told = await policyOf(node, { 'x-merchant': 'm2', 'x-merchant-tier': 'S' });
        return told.includes('"merchant";q=5000') && told;
      });
      expect(promo).toContain('"user";q=5;w=60');
    }
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(at));
  });

  it('tells an operator in a hurry what would have no effect', async () => {
    const covered = await weir('config', 'set', 'policies.merchant.tiers.S', '2000/min');
    expect([covered.code, covered.err]).toEqual([
      1,
      expect.stringContaining('profiles.promo.policies.merchant.tiers.S'),
    ]);
    const misspelt = await weir('config', 'set', 'policies.mercant.rate', '10');
    expect([misspelt.code, misspelt.err]).toEqual([1, expect.stringContaining('--new')]);
    await done('config', 'set', 'profiles.promo.policies.merchant.tiers.S', '2000/min');
    const told = () => policyOf(b, { 'x-merchant': 'm3', 'x-merchant-tier': 'S' });
    await until(async () => (await told()).includes('"merchant";q=2000'));
  });

  it('is held at its fallbacks by command, in both processes, and let go', async () => {
    await done('degrade', 'force', 'page', '--level', '4');
    for (const node of [a, b]) {
      await until(async () => (await node.ask('/product/1', newUser())).status === 503);
    }
    expect(await done('status')).toMatch(/page +forced +4/);
    await done('degrade', 'release', 'page');
    for (const node of [a, b]) {
      await until(async () => {
        return isFresh(await node.ask('/product/1', newUser()));
      });
    }
  });

  it('is back to its usual figures by one command', async () => {
    await done('config', 'set', 'profile', 'normal');
    const told = () => policyOf(a, { 'x-merchant': 'm4', 'x-merchant-tier': 'S' });
    await until(async () => (await told()).includes('"merchant";q=1000'));
    expect(await told()).toContain('"user";q=10;w=60');
  });

  it('serves bunches of requests while Redis is dead, says so, and shares again', async () => {
    await redis.kill();
    const answers: Answer[] = [];
    await until(async () => {
      answers.push(...(await atOnce(10, '/order', newUser, 'POST')));
      return [a, b].every(({ lines }) => lines.some((line) => line.includes('is offline')));
    });
    answers.push(...(await atOnce(30, '/order', newUser, 'POST')));
    answers.push(...(await atOnce(30, '/product/1')));
    expect(answers.filter(({ status }) => status >= 300).map(({ body }) => body)).toEqual([]);
    for (const node of [a, b]) {
      await node.line(
        /^warn The store is lost: ".*"\. Meanwhile decides: this process's share for /,
      );
      await node.line(/^warn App "shop" is offline: decided by this process's share /);
    }
    await redis.restart();
    await until(async () => {
      await atOnce(10, '/order', newUser, 'POST');
      return [a, b].every(({ lines }) => lines.some((line) => line.includes('by the quota again')));
    });
    for (const node of [a, b]) await node.line(/^log The store is back, after [\d.]+ s: /);
  });

  it('ends without anything else to tell', async () => {
    await Promise.all([a.close(), b.close()]);
    const troubles = [...a.lines, ...b.lines].filter((line) => /^(warn|error) /.test(line));
    expect(troubles.filter((line) => !TOLD.some((pattern) => pattern.test(line)))).toEqual([]);
  });
});
