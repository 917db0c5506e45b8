import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { runToEnd } from '../setup/run-to-end.js';
import { stopAll } from '../support/processes.js';
import { toJavaScript } from './markdown-code.js';

const [page, differences] = ['migrating-from-throttler', 'throttler-differences'].map((name) =>
  readFileSync(join(root, `docs/${name}.md`), 'utf8'),
) as [string, string];

/** The code below a comment of the page. */
function codeOf(mark: string): string {
  const [, code] = new RegExp(`<!-- ${mark} -->\\s*\`\`\`ts\\n([\\s\\S]*?)^\`\`\``, 'm').exec(
    page,
  )!;
  return code!;
}

/** The same main.ts for both, which asks the app a few times and prints what it answers. */
const MAIN = `
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
await app.listen(0, '127.0.0.1');
const url = await app.getUrl();
for (const path of ['/cats', '/cats/custom', '/users/limited', '/users/free', '/cats']) {
  const statuses: Record<number, number> = {};
  let text = '';
  for (let i = 0; i < 12; i++) {
    const response = await fetch(url + path);
    statuses[response.status] = (statuses[response.status] ?? 0) + 1;
    if (response.ok) text = await response.text();
  }
  console.log(path, JSON.stringify(statuses), text);
}
await app.close();
`;

/**
 * Two in ten seconds are taken at 0 s, a third one comes: from which second on does its caller pass
 * again, as the throttler counts and as we do?
 */
const COMING_BACK = `
import 'reflect-metadata';
import { ThrottlerStorageService } from '@nestjs/throttler';
import { createRateLimiter } from 'nestjs-weir';
import { ManualClock } from 'nestjs-weir/testing';
const ttl = 10_000, limit = 2;

async function before(blockDuration: number, seconds: number[]) {
  const storage = new ThrottlerStorageService();
  let passed = false;
  for (const second of seconds) {
    Date.now = () => second * 1000;
    passed = !(await storage.increment('ann', ttl, limit, blockDuration, 'default')).isBlocked;
  }
  storage.onApplicationShutdown();
  return passed;
}

async function after(_: number, seconds: number[]) {
  const clock = new ManualClock(0);
  const visits = { algorithm: 'sliding-window', rate: limit, period: ttl } as const;
  const limiter = createRateLimiter({ clock, policies: { visits } });
  let passed = false;
  for (const second of seconds) {
    clock.advance(second * 1000 - clock.now() / 1000);
    passed = (await limiter.tryAcquire({ policy: 'visits', key: 'ann' })).allowed;
  }
  await limiter.close();
  return passed;
}

async function firstBack(count: typeof before, blockDuration: number, third: number) {
  if (await count(blockDuration, [0, 0, third])) throw new Error('the third has passed');
  for (let second = third; second < 30; second++) {
    if (await count(blockDuration, [0, 0, third, second])) return second;
  }
}

for (const blockDuration of [5_000, ttl, 15_000, 0]) {
  const back = [];
  for (const count of [before, after]) {
    for (const third of [0, 8]) back.push(await firstBack(count, blockDuration, third));
  }
  console.log(JSON.stringify(back));
}
`;

const runCode = async (code: string) =>
  runToEnd(process.execPath, ['--input-type=module', '-'], {
    cwd: root,
    input: await toJavaScript(code),
  });
const run = (code: string) => runCode(code + MAIN);

beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
afterAll(stopAll);

describe('the page on moving over from @nestjs/throttler', () => {
  const [before, after] = [codeOf('before'), codeOf('after')];

  it('has two apps that answer alike', async () => {
    const [old, moved] = [await run(before), await run(after)];
    expect(old).toMatchObject({ code: 0, stderr: '' });
    expect(old.stdout.split('\n').slice(0, 4)).toEqual([
      '/cats {"200":10,"429":2} List cats works with the limit of the module.',
      '/cats/custom {"200":3,"429":9} List cats works with custom rate limiting.',
      '/users/limited {"200":10,"429":2} List users works with rate limiting.',
      '/users/free {"200":12} List users works without rate limiting.',
    ]);
    expect(moved).toEqual(old);
  });

  it('changes the module and the decorators, and nothing else', () => {
    const controllers = (code: string): string[] =>
      code
        .slice(code.indexOf('@Controller'), code.indexOf('@Module'))
        .split('\n')
        .filter((line) => !/^\s*@(Skip|Throttle|RateLimit)/.test(line));
    expect(controllers(after)).toEqual(controllers(before));
  });

  it('says rightly when those come back who came too often', async () => {
    const { stdout, stderr } = await runCode(COMING_BACK);
    expect(stderr).toBe('');
    const rows = stdout.trim().split('\n');
    const seconds = rows.map((row) => JSON.parse(row) as number[]);
    expect(seconds).toEqual([
      [5, 13, 10, 10],
      [10, 18, 10, 10],
      [15, 23, 10, 10],
      [10, 10, 10, 10],
    ]);
    const told = [...differences.matchAll(/^\|.*?from (\d+) s.*from (\d+) s.*from (\d+) s/gm)];
    expect(told.map(([, ...cells]) => cells.map(Number))).toEqual(
      seconds.map(([atOnce, later, ours]) => [atOnce, later, ours]),
    );
  });
});
