import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMANDS, runCommand } from '../../lib/cli/run-command.js';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { runToEnd, type Finished } from '../setup/run-to-end.js';
import { makeTempDir, stopAll } from '../support/processes.js';

beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
afterAll(stopAll);

const broken = join(root, 'test/config/broken');

/** The command as a process of its own. */
function weir(args: readonly string[], input = ''): Promise<Finished> {
  const options = { cwd: broken, input, env: { REDIS_URL: undefined } };
  return runToEnd(process.execPath, [join(root, 'bin/weir.mjs'), ...args], options);
}

/** The same without one. */
async function command(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  const code = await runCommand(args, {
    log: (text) => (out += `${text}\n`),
    error: (text) => (err += `${text}\n`),
  });
  return { code, out, err };
}

const A_RATE = "a number above 0 or a text like '100/s', '100/min', '1000/5m'";
const A_DURATION =
  "a duration from 1 ms to 365 days: milliseconds or a text like '250ms', '60s', '5m', '1h', '1d'";

const FAULTS: Record<string, string[]> = {
  'not-json.json': [`line 4, column 5: not JSON: expected ',' or '}', got '"login":'`],
  'indented.yaml': ['line 4, column 4: not YAML: bad indentation of a mapping entry'],
  'twice.yaml': ['line 3, column 3: not YAML: duplicated mapping key'],
  'empty.yaml': ['is empty'],
  'nothing.yaml': [
    'the document: is empty; expected at least one of cluster, apps, policies, degradation, protection, overload, alerts ' +
      '(or allowEmpty, if that is meant)',
  ],
  'misspelt.yaml': [
    "policies.login.key: expected 'ip', 'user', 'route', 'global', { header }, { param }, or a list of these, " +
      'got {"heder":"x-key"}',
    "policies.login.brust: no such field; did you mean 'burst'?",
    "polices: no such field; did you mean 'policies'?",
  ],
  'figures.yaml': [
    `policies.api.rate: expected ${A_RATE}, got "fast"`,
    `policies.api.period: expected ${A_DURATION}, got "5 parsecs"`,
    'policies.api.cost: expected a whole number from 1 to 1000000000000, got 0.5',
    'policies.search.mode: expected no mode without algorithm: \'leaky-bucket\', got "shaper"',
    'policies.search.cost: expected at most 10, all that the limit ever holds (raise its burst), got 20',
  ],
  'too-much.json': [
    'apps: expected guarantees of no more than 9000 in all (capacity 10000 less 0.1 of it), got 10000',
  ],
  'profiles.yaml': [
    'apps.reports.priority: expected 0, 1, 2 or 3, got 7',
    'apps.checkout.burst: expected at least the guarantee of 4000, got 400',
    'profile: expected one of normal, promo, got "promi"; did you mean \'promo\'?',
    'profiles.promo: in force, policies.api.cost: expected at most 5, all that the limit ever holds (raise its burst), got 9',
  ],
  'names.json': [
    'policies.__proto__: no field may be called so; expected another name',
    'protection.db.rate: expected the name of one of the policies, got "databse"',
  ],
};

describe('config check', () => {
  it('has ten broken files to look at', () => {
    expect(readdirSync(broken).sort()).toEqual(Object.keys(FAULTS).sort());
    expect(Object.keys(FAULTS)).toHaveLength(10);
  });

  it('says of each what is wrong and where', async () => {
    const files = Object.keys(FAULTS);
    const { code, stdout, stderr } = await weir(['config', 'check', ...files]);
    const told = files.map((file) => {
      const faults = FAULTS[file]!;
      const count = faults.length === 1 ? '1 fault' : `${faults.length} faults`;
      return [`${file}: ${count}`, ...faults.map((fault) => `  ${fault}`), ''].join('\n');
    });
    expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: '', stderr: told.join('') });
  });

  it.each(Object.keys(FAULTS))('fails on %s alone', async (file) => {
    expect((await command('config', 'check', join(broken, file))).code).toBe(1);
  });

  it('says the same to machines', async () => {
    const { code, stdout, stderr } = await weir(['config', 'check', '--json', 'profiles.yaml']);
    const [verdict] = JSON.parse(stdout) as [{ file: string; ok: boolean; issues: object[] }];
    expect([code, stderr, verdict.ok, verdict.file]).toEqual([1, '', false, 'profiles.yaml']);
    expect(verdict.issues[0]).toEqual({
      path: 'apps.reports.priority',
      value: 7,
      expected: '0, 1, 2 or 3',
      message: FAULTS['profiles.yaml']![0],
    });
  });

  it('reads the input, and passes what is right', async () => {
    const { code, output } = await weir(['config', 'check', '-'], 'policies: { api: { rate: 5 } }');
    expect([code, output]).toEqual([0, '-: ok\n']);
  });

  it('lets a layer be incomplete, or empty, if told so', async () => {
    const dir = makeTempDir();
    const file = join(dir, 'layer.yaml');
    writeFileSync(file, 'apps: { checkout: { burst: 500 } }');
    expect((await command('config', 'check', file)).code).toBe(1);
    expect((await command('config', 'check', '--partial', file)).code).toBe(0);
    writeFileSync(file, '{}');
    expect((await command('config', 'check', '--allow-empty', file)).code).toBe(0);
  });

  it('says that a file is not there', async () => {
    const { code, err } = await command('config', 'check', '/nowhere/weir.yaml');
    expect(code).toBe(1);
    expect(err).toContain('cannot be read (ENOENT');
  });
});

describe('the command line', () => {
  it('tells what it can do, and which version it is', async () => {
    const help = await weir(['--help']);
    expect(help.code).toBe(0);
    for (const { name, about } of COMMANDS) {
      expect(help.stdout).toContain(`  ${name} `);
      expect(help.stdout).toContain(about);
    }
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      version: string;
    };
    expect((await weir(['--version'])).stdout).toBe(`${version}\n`);
    expect((await command()).out).toBe(help.stdout);
  });

  it.each(COMMANDS.map(({ name }) => name))('explains %s', async (name) => {
    const { code, out } = await command(...name.split(' '), '--help');
    expect(code).toBe(0);
    expect(out).toContain(`Usage: weir ${name}`);
    expect(out).toMatch(/^ {2}--\w/m);
  });

  it.each([
    [
      ['confg', 'check'],
      "There is no command 'confg'. Did you mean 'config check'? Try weir --help.",
    ],
    [['config', 'chek'], "There is no command 'config chek'. Did you mean 'config check'?"],
    [['config'], "There is no command 'config'."],
    [['stats'], "Did you mean 'status'?"],
    [['stat'], "Did you mean 'status'?"],
    [['sim'], "Did you mean 'simulate'?"],
    [['conf'], "There is no command 'conf'. Did you mean 'config'? Try weir --help."],
    [['confg'], "Did you mean 'config'?"],
    [['xyzzy'], "There is no command 'xyzzy'. Try weir --help."],
    [['config', 'check'], 'FILE is missing.\n\nUsage: weir config check FILE… [OPTIONS]'],
    [['config', 'check', 'a', '--nonsense'], "Unknown option '--nonsense'"],
    [['config', 'get', 'a', 'b'], "'b' is one word too many."],
    [['config', 'set', 'a'], 'Give a PATH and a VALUE, or --patch FILE.'],
    [['config', 'set', 'a..b', '1'], "'a..b' is not a path"],
    [['config', 'set', 'a', '1', '--at', 'noon'], '--at must be a time such as'],
    [['config', 'rollback', 'x'], "REVISION must be a whole number; got 'x'"],
    [['config', 'history', '--count', '-1'], '--count'],
  ])('does not understand %j, and says why', async (args, message) => {
    const { code, out, err } = await command(...args);
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain(message);
  });

  it.each(['nonsense', 'http://x', 'redis:/x', '127.0.0.1:6379'])(
    'says what an address looks like if it is %s',
    async (url) => {
      const { code, err } = await command('status', '--url', url);
      expect(code).toBe(2);
      expect(err).toContain(
        `The address must be like redis://127.0.0.1:6379 or rediss://…; got '${url}'.`,
      );
    },
  );

  it('says which Redis cannot be reached, without its password', async () => {
    const { code, err } = await command('status', '--url', 'redis://me:secret@127.0.0.1:1');
    expect([code, err]).toEqual([
      1,
      'store unavailable: redis://127.0.0.1:1: connect ECONNREFUSED 127.0.0.1:1\n',
    ]);
  });
});

describe('simulate', () => {
  it('runs the quota of a configuration, with its profile', async () => {
    const file = join(makeTempDir(), 'weir.yaml');
    const app = 'api: { guaranteed: 100, burst: 300 }';
    writeFileSync(file, `cluster: { capacity: 300 }\napps: { ${app} }\n`);
    const { code, out } = await command('simulate', file, '--scenario', 'skew', '--nodes', '3');
    expect(out).toMatch(/^\nskew: [^]*\n\d+ of \d+ bars met, \d+ MISSED.\n$/);
    expect(code).toBe(out.endsWith(' 0 MISSED.\n') ? 0 : 1);
  });

  it('says what is missing for it', async () => {
    const { code, err } = await command('simulate', join(broken, 'too-much.json'));
    expect(code).toBe(1);
    expect(err).toContain(FAULTS['too-much.json']![0]);
    const file = join(makeTempDir(), 'weir.yaml');
    writeFileSync(file, 'policies: { api: { rate: 5 } }');
    expect((await command('simulate', file)).err).toContain(
      'cluster.capacity and apps are needed for a simulation',
    );
  });
});
