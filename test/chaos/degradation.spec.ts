import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { freePort } from '../support/free-port.js';
import { startRedis, stopAll, until, type RedisProcess } from '../support/index.js';
import { PacedViewers, percentile, type Seen } from '../sample/paced-viewers.js';
import { ProductPage, UPSTREAMS } from '../sample/product-page.js';
import { note } from './note.js';

const USERS = ['ada', 'bob', 'cleo', 'dan', 'eve', 'fay'];
/** Some sixty requests a second, of which each makes four upstream. */
const ASK_EVERY_MS = 15;

const all = (mode: string): Record<string, string> =>
  Object.fromEntries(UPSTREAMS.map((name) => [name, mode]));

/** True for an answer that is allowed: the product, less of it, or words. */
function isDefined({ status, level, headers, body }: Seen): boolean {
  const isLimited = headers['x-degraded'] === 'level=4; reason=limited';
  if (level === 4) return status === (isLimited ? 429 : 503) && typeof body.detail === 'string';
  const isMarked = level === 0 || headers['cache-control'] === 'no-store';
  return status === 200 && isMarked && (level === 3 || body.reviews?.length === 100);
}

/** Whether anything in it is another user's. */
function isOthers({ user, level, body }: Seen): boolean {
  if (level === 4) return JSON.stringify(body).includes('"viewer"');
  return body.viewer !== user || (body.recommendations?.viewer ?? user) !== user;
}

const brief = ({ status, level, headers, user, body }: Seen): object => ({
  ...{ status, level, user, viewer: body.viewer, mark: headers['x-degraded'] },
});

describe('the product page under load, when everything goes wrong', () => {
  let redis: RedisProcess;
  let page: ProductPage;
  let viewers: PacedViewers;

  beforeAll(async () => {
    await ensureBuilt();
    redis = await startRedis();
    page = await ProductPage.start({
      PORT: String(await freePort()),
      REDIS_URL: redis.url,
      ...{ PACE_MS: '150', UPSTREAM_MS: '20' },
    });
  }, BUILD_TIMEOUT_MS);
  afterAll(stopAll);

  /** Until so many more were answered, and one of them at that level. */
  async function untilSeen(level: number): Promise<void> {
    const { seen } = viewers;
    const from = seen.length;
    await until(
      () => seen.length >= from + 50 && seen.slice(from).some((one) => one.level === level),
      {
        timeoutMs: 60_000,
        what: `an answer of level ${level}`,
      },
    );
  }

  const untilPhase = (what: string, isIt: (phase: string) => boolean): Promise<unknown> =>
    until(async () => isIt((await page.state()).recovery.phase), { timeoutMs: 60_000, what });

  /** Until it has been noticed and the best answer is of that level; then all is well again. */
  async function goThrough(
    trouble: Readonly<Record<string, string>>,
    level: number,
  ): Promise<void> {
    await page.turn(trouble);
    await untilSeen(level);
    await untilPhase('the page to be degraded', (phase) => phase !== 'normal');
    if (!redis.alive) await redis.restart();
    await page.turn(all('normal'));
    await untilPhase('the way back', (phase) => phase === 'normal');
  }

  it('answers everybody in time, nobody with what is another’s, and comes back by stages', async () => {
    await page.connect(60);
    viewers = new PacedViewers(page, USERS);
    viewers.begin(ASK_EVERY_MS);
    await untilSeen(0);
    await page.turn({ limit: 'small' });
    await untilSeen(1);
    await page.turn({ limit: 'large' });

    await redis.kill();
    await untilSeen(0);
    await goThrough({ reviews: 'slow', recommendations: 'slow' }, 2);
    await goThrough({ sales: 'dead' }, 3);
    // All at once: no store, two that hang, two that are gone.
    await redis.kill();
    await goThrough({ base: 'slow', reviews: 'dead', sales: 'slow', recommendations: 'dead' }, 4);
    await untilSeen(0);
    await viewers.end();

    const { recovery, vitals, deadlineMs } = await page.state();
    const { seen, unanswered, lateMs } = viewers;
    const tookMs = percentile(
      seen.map((one) => one.tookMs),
      99.9,
    );
    note({ answers: seen.length, tookMs, lateMs, vitals, stages: recovery.stages });
    expect(unanswered).toEqual([]);
    expect(seen.filter((one) => !isDefined(one)).map(brief)).toEqual([]);
    expect(seen.filter(isOthers).map(brief)).toEqual([]);
    expect(new Set(seen.map(({ level }) => level))).toEqual(new Set([0, 1, 2, 3, 4]));

    // From when the server has a request, and of each only the time in which its loop came round: while a
    // busy machine has no time for the server no timer of it ends. What callers see is noted: Node accepts
    // one connection in each turn of its loop, so new ones wait longer than any turn takes.
    expect(vitals.answers.count).toBe(seen.length);
    expect(vitals.answersInLoop.maxMs).toBeLessThanOrEqual(deadlineMs);

    expect(recovery.recovered).toBeGreaterThanOrEqual(3);
    expect(recovery.stages.map(({ percent }) => percent)).toEqual([10, 30, 50, 100]);
    for (const { percent, entered, admitted, held } of recovery.stages) {
      expect(entered).toBeGreaterThanOrEqual(3);
      expect(admitted).toBeGreaterThanOrEqual(((admitted + held) * percent) / 100);
      expect(admitted).toBeLessThanOrEqual(((admitted + held) * percent) / 100 + entered);
    }
  }, 240_000);
});
