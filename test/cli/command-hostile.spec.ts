import { execFileSync } from 'node:child_process';
import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { runToEnd } from '../setup/run-to-end.js';
import { stopAll, withRedis } from '../support/index.js';
import { makeTempDir } from '../support/processes.js';
import { acknowledge, commandStand, weirCommand } from './weir-command.js';

const stand = commandStand();
const { weir } = stand;

beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
afterAll(stopAll);

describe('what others have chosen', () => {
  const STEERING = '\u001b]0;owned\u0007\u001b[2J\r\nrevision 99 by root\u202e';

  it('cannot steer the terminal, nor make one line look like two', async () => {
    await weir('config', 'set', '--new', 'policies.api.rate', '5', '--by', 'ann');
    await withRedis(stand.redis.port, async (client) => {
      const key = 'weir:{config}:current';
      for (const [name, list] of [
        [key, 'current'],
        ['weir:{config}:history', undefined],
      ] as const) {
        const text = list ? await client.hget(name, list) : await client.lindex(name, 0);
        const spoilt = text!.replace('"ann"', JSON.stringify(`eve${STEERING}`));
        await (list ? client.hset(name, list, spoilt) : client.lset(name, 0, spoilt));
      }
    });
    await acknowledge(stand.redis.url, {
      node: `node${STEERING}`,
      revision: 1,
      status: 'refused',
      about: 1,
      reason: `because${STEERING}`,
    });
    for (const args of [['config', 'get'], ['config', 'history'], ['status']]) {
      const { out, err } = await weir(...args);
      expect((out + err).replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
      expect(out).not.toMatch(/^revision 99 by root/m);
      expect(out).toMatch(/eve|node/);
    }
  });

  it.each(['\u001b[2J', 'two\nlines', 'x'.repeat(201), ''])(
    'is no name of who makes a change: %j',
    async (by) => {
      const { code, err } = await weir(
        'config',
        'set',
        '--new',
        'policies.api.rate',
        '5',
        '--by',
        by,
      );
      expect(code).not.toBe(0);
      expect(err).toContain('by: expected a name of 1 to 200 characters, on one line');
    },
  );
});

describe('a password', () => {
  it.each([
    ['config', 'get', '--url', 'redis://h/?password=hunter2'],
    ['config', 'get', '--url', 'redis:user:hunter2'],
    ['config', 'get', '--url', 'redis://user:hun@ter2@127.0.0.1:1'],
    ['redis://user:hunter2@127.0.0.1:1'],
    ['config', 'redis://user:hunter2@127.0.0.1:1'],
    ['config', 'get', '--urll', 'redis://user:hunter2@127.0.0.1:1'],
    ['config', 'get', 'a', 'redis://user:hunter2@127.0.0.1:1'],
    ['config', 'get', '--url', 'redis://h/?sentinelPassword=hunter2'],
    ['config', 'get', '--url', 'redis://user:hunter2 x@127.0.0.1:1'],
    ['status', 'redis://user:hunter2@127.0.0.1:1', '--json'],
  ])('is not shown: weir %s %s %s %s', async (...args) => {
    const { code, out, err } = await weirCommand(...args.filter((one) => one !== undefined));
    expect(code).not.toBe(0);
    expect(out + err).not.toContain('ter2');
  });
});

it.each(['policies["\\q"]', 'policies["\\u12"]'])('%s is no path', async (path) => {
  const { code, err } = await weirCommand('config', 'unset', path);
  expect([code, err]).toEqual([2, expect.stringContaining('is not a path')]);
});

describe('the command ends', () => {
  const bin = (...args: string[]) =>
    runToEnd(process.execPath, [join(root, 'bin/weir.mjs'), ...args], {
      cwd: root,
      env: { REDIS_URL: stand.redis.url },
    });

  it('also if a name for the store is wrong', async () => {
    const { code, stderr } = await bin('config', 'get', '--prefix', 'a b');
    expect([code, stderr]).toEqual([1, expect.stringContaining('store.prefix')]);
  });

  it('also if nobody reads what it says any more', async () => {
    const help = `"${process.execPath}" bin/weir.mjs --help`;
    const { stderr } = await runToEnd('sh', ['-c', `(sleep 0.3; ${help}) | true`], { cwd: root });
    expect(stderr).toBe('');
  });

  it('also if a file is far too large, or never ends', async () => {
    const dir = makeTempDir();
    const large = join(dir, 'large.yaml');
    writeFileSync(large, 'a');
    truncateSync(large, 2 ** 33);
    const pipe = join(dir, 'pipe.yaml');
    execFileSync('mkfifo', [pipe]);
    const found = await Promise.all([large, pipe].map((file) => bin('config', 'check', file)));
    expect(found.map(({ code }) => code)).toEqual([1, 1]);
    expect(found[0]!.stdout + found[0]!.stderr).toContain('has 8589934592 bytes');
    expect(found[1]!.stdout + found[1]!.stderr).toContain('is not a file');
  });

  it('also if the input is too large', async () => {
    const { code, stdout, stderr } = await runToEnd(
      process.execPath,
      [join(root, 'bin/weir.mjs'), 'config', 'check', '-'],
      { cwd: root, input: 'a'.repeat(3_000_000) },
    );
    expect([code, stdout + stderr]).toEqual([
      1,
      expect.stringMatching(/has \d+ bytes; no more than 1048576 are read/),
    ]);
  });
});
