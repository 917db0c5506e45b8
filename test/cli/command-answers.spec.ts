import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Controller, Get, Module, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RateLimit, RateLimitConfig, RateLimitModule } from 'nestjs-weir';
import { makeTempDir } from '../support/processes.js';
import { until } from '../support/until.js';
import { acknowledge, commandStand, weirCommand } from './weir-command.js';

const stand = commandStand();
const { weir, json } = stand;

function fileOf(text: string): string {
  const file = join(makeTempDir(), 'weir.yaml');
  writeFileSync(file, text);
  return file;
}

describe('a change that running processes refuse', () => {
  @Controller()
  class SearchController {
    @Get('search')
    @RateLimit('search')
    search() {
      return [];
    }
  }

  const REASON =
    'policies.search: expected to stay: @RateLimit on SearchController.search names it';

  let app: INestApplication;
  afterEach(() => app.close());

  beforeEach(async () => {
    const store = { type: 'redis', url: stand.redis.url } as const;
    const policies = { search: { rate: 5 }, other: { rate: 5 } };
    @Module({
      imports: [RateLimitModule.forRoot({ store, policies })],
      controllers: [SearchController],
    })
    class ShopModule {}
    app = await NestFactory.create(ShopModule, { logger: false });
    await app.init();
  });

  const revision = (): number => app.get(RateLimitConfig).current().revision;
  const refusal = `refused by 1 of 1 process, which stays on what was:\n  ${REASON}\n`;

  it('fails, says who refused it and why, and is taken back', async () => {
    expect((await weir('config', 'set', 'policies.other', 'null')).code).toBe(0);
    const { code, out, err } = await weir(
      'config',
      'set',
      'policies.search',
      'null',
      '--by',
      'ann',
    );
    expect([code, out.split('\n')[0]]).toEqual([1, 'revision 3, which was refused:']);
    expect(err).toBe(`${refusal}taken back by revision 4: all is as before (--keep leaves it)\n`);
    expect(await json('config', 'history', '--count', '2')).toMatchObject([
      { revision: 4, kind: 'rollback', by: 'ann' },
      { revision: 3, kind: 'update', by: 'ann' },
    ]);
    // So that the next change does not fail for the same reason.
    expect((await weir('config', 'set', 'policies.search.rate', '6')).code).toBe(0);
    await until(() => revision() === 5);
  });

  it('stays if that is asked for, and says how to take it back', async () => {
    const { code, err } = await weir('config', 'set', 'policies.search', 'null', '--keep');
    expect([code, err]).toEqual([1, `${refusal}take it back with: weir config rollback 1\n`]);
    expect(revision()).toBe(1);
    expect((await weir('config', 'rollback', '1')).code).toBe(0);
  });

  it('stays if somebody else has refused nothing', async () => {
    await acknowledge(stand.redis.url, { node: 'b', revision: 9, status: 'applied' });
    const { code, err } = await weir('config', 'set', 'policies.search', 'null');
    expect([code, err]).toEqual([
      1,
      expect.stringMatching(
        /^refused by 1 of 2 processes[^]*take it back with: weir config rollback 1\n$/,
      ),
    ]);
  });

  it('says so to machines, also of one that is to come, which is cancelled', async () => {
    const args = ['config', 'set', 'policies.search', 'null', '--at', '2100-01-01', '--json'];
    const { code, out } = await weir(...args);
    expect([code, JSON.parse(out)]).toEqual([
      1,
      expect.objectContaining({
        ...{ revision: 2, takenBack: 3, silent: [] },
        refused: [
          expect.objectContaining({
            revision: 2,
            reason: expect.stringContaining(REASON) as string,
          }),
        ],
      }),
    ]);
    expect(await json('config', 'staged')).toEqual([]);
    const kept = await weir(...args.slice(0, -1), '--keep');
    expect(kept.err).toContain('take it back with: weir config cancel 4\n');
    expect((await weir('config', 'cancel', '4')).out).toMatch(
      /^revision 5: update 4 for 2100.* is cancelled\n$/,
    );
  });

  it('is not held against those that have not said anything', async () => {
    await acknowledge(stand.redis.url, { node: 'a', revision: 1, status: 'applied' });
    const { code, out } = await weir('config', 'set', '--new', 'policies.api.rate', '6');
    expect(code).toBe(0);
    expect(out).toMatch(/\n1 of 2 processes said nothing of it yet: weir status shows who has\n$/);
  });
});

describe('what goes wrong', () => {
  it.each([
    [1, ['config', 'set', '--new', 'policies.api.rate', '5', '--expected', '9'], 'CONFIG_CONFLICT'],
    [1, ['config', 'rollback', '99'], 'UNKNOWN_REVISION'],
    [1, ['config', 'cancel', '99'], 'UNKNOWN_STAGED'],
    [1, ['config', 'set', 'policies.api.rate', '5'], 'COMMAND_FAILED'],
    [2, ['config', 'cancel', '0'], 'USAGE'],
    [1, ['config', 'get', 'policies.api'], 'COMMAND_FAILED'],
    [1, ['config', 'diff', '/nowhere.yaml'], 'CONFIG_SYNTAX'],
    [2, ['config', 'rollback', 'x'], 'USAGE'],
  ])('is JSON too, with the exit code %i: %j', async (exit, args, expected) => {
    const { code, out, err } = await weir(...args, '--json');
    const { error } = JSON.parse(out) as { error: { code: string; message: string } };
    expect([code, error.code]).toEqual([exit, expected]);
    expect(err.startsWith(error.message)).toBe(true);
  });

  it('has its faults one by one', async () => {
    const { error } = await json<{ error: object }>('config', 'set', 'policies.api.rat', '5');
    expect(error).toMatchObject({
      code: 'INVALID_CONFIG',
      issues: [{ path: 'policies.api.rat', expected: "'rate'" }],
    });
  });

  it('never shows a part of a password', async () => {
    const url = 'redis://me:se@cr/et@127.0.0.1:1';
    for (const address of [url, url.replace('redis:', 'http:')]) {
      const { err } = await weirCommand('status', '--url', address);
      expect(err).toContain('//127.0.0.1:1');
      expect(err).not.toContain('et@');
    }
  });
});

describe('what a file would change', () => {
  beforeEach(() =>
    weir(
      'config',
      'set',
      '--new',
      '--patch',
      fileOf('policies: { a: { rate: 5 }, b: { rate: 6 } }'),
    ),
  );

  it('is what it would as a patch: the rest stays, and null removes', async () => {
    const file = fileOf('policies: { a: null, c: { rate: 7 } }');
    const { impact, ...planned } = await json<Record<string, unknown>>('config', 'diff', file);
    // Nobody has figures of this fleet.
    expect(impact).toBeNull();
    expect(planned).toEqual({
      added: [{ path: 'policies.c', after: { rate: 7 } }],
      removed: [{ path: 'policies.a', before: { rate: 5 } }],
      changed: [],
    });
    const { diff } = await json<{ diff: object }>('config', 'set', '--new', '--patch', file);
    expect(diff).toEqual(planned);
  });

  it('is nothing if it could not be set', async () => {
    const { code, out, err } = await weir('config', 'diff', fileOf('policies: { a: { cost: 9 } }'));
    expect([code, out]).toEqual([1, '']);
    expect(err).toContain(
      'policies.a.cost: expected at most 5, all that the limit ever holds (raise its burst), got 9',
    );
  });
});

describe('help', () => {
  it.each([[['config', '--help']], [['config', 'help']], [['help', 'config']]])(
    'tells of a group of commands: %j',
    async (args) => {
      const { code, out } = await weirCommand(...args);
      expect([code, out.split('\n')[0]]).toEqual([0, 'Usage: weir config COMMAND [OPTIONS]']);
      expect(out).toContain('  config rollback REVISION ');
      expect(out).not.toContain('  status ');
    },
  );

  it('tells of one command in both orders', async () => {
    const { out } = await weirCommand('help', 'config', 'set');
    expect(out).toBe((await weirCommand('config', 'set', '--help')).out);
  });

  it.each([
    [['config'], "There is no command 'config'. There are: config check, config get, "],
    [['help', 'frob'], "There is no command 'frob'. Try weir --help."],
    [['config', 'rollback'], 'REVISION is missing.\n'],
    [['config', 'diff'], 'FROM is missing.\n'],
    [['config', 'history', '--count', '0'], "--count must be a whole number from 1; got '0'."],
    [['simulate', '--frob'], "Unknown option '--frob'.\n\nUsage: weir simulate [FILE] [OPTIONS]"],
    [['simulate', '--scenario', 'frob'], "There is no scenario 'frob'. There are: skew, "],
  ])('is given where %j is not understood', async (args, message) => {
    const { code, out, err } = await weirCommand(...args);
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain(message);
  });

  it('names the scenarios', async () => {
    expect((await weirCommand('simulate', '--help')).out).toMatch(/\nScenarios\n {2}skew +demand/);
  });
});

it('simulates for machines', async () => {
  const file = fileOf('cluster: { capacity: 300 }\napps: { api: { guaranteed: 100, burst: 300 } }');
  const args = ['simulate', '--scenario', 'skew', '--nodes', '2', '--json', file];
  const { code, out, err } = await weirCommand(...args);
  const rows = JSON.parse(out) as { scenario: string; ok: boolean | null }[];
  expect(err).toBe('');
  expect(new Set(rows.map(({ scenario }) => scenario))).toEqual(new Set(['skew']));
  expect(code).toBe(rows.some(({ ok }) => ok === false) ? 1 : 0);
});
