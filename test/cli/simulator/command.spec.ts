import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../../../lib/cli/run-command.js';
import { SCENARIOS } from '../../../lib/cli/simulator/scenarios/index.js';
import { type FigureRow } from '../../../lib/cli/simulator/report/findings.js';
import { tableBelow } from '../../package/markdown.js';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../../setup/ensure-built.js';
import { runToEnd, type Finished } from '../../setup/run-to-end.js';
import { stopAll } from '../../support/processes.js';

let dir: string;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'weir-simulate-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const SMALL = { cluster: { capacity: 300 }, apps: { api: { guaranteed: 100, burst: 300 } } };

function fileOf(name: string, content: unknown): string {
  const file = join(dir, name);
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  return file;
}

async function command(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  const code = await runCommand(['simulate', ...args], {
    log: (text) => (out += `${text}\n`),
    error: (text) => (err += `${text}\n`),
  });
  return { code, out, err };
}

describe('the command line', () => {
  it('shows its options and scenarios, and runs nothing', async () => {
    const { code, out, err } = await command('--help');
    expect([code, err]).toEqual([0, '']);
    for (const { name } of SCENARIOS) expect(out).toContain(`  ${name} `);
    for (const option of ['scenario', 'nodes', 'seed', 'random', 'svg', 'json']) {
      expect(out).toContain(`  --${option} `);
    }
  });

  it('is in docs/simulator.md, option by option', async () => {
    const { out } = await command('--help');
    const options = [...out.matchAll(/^ {2}(--\w+(?: [A-Z]+)?) /gm)].map(([, option]) => option);
    const page = readFileSync(join(root, 'docs/simulator.md'), 'utf8');
    expect([...tableBelow(page, 'Options').keys()]).toEqual(options);
    expect(options).toContain('--random N');
  });

  it.each([
    [['--scenario', 'nonsense'], "There is no scenario 'nonsense'. There are: skew, "],
    [['--scenario'], '--scenario'],
    [['--nonsense'], '--nonsense'],
    [['a.yaml', 'b.yaml'], "'b.yaml' is one word too many."],
    [['a.yaml', '--random', '3'], "'a.yaml' does not go with --random."],
    [['--nodes', '0'], "--nodes must be a whole number from 1 to 1000; got '0'"],
    [['--nodes', 'many'], "got 'many'"],
    [['--seed', ''], "--seed must be a whole number from 0 to 1000000000; got ''"],
  ])('says what is wrong with %j', async (args, message) => {
    const { code, out, err } = await command(...args);
    expect([code, out]).toEqual([2, '']);
    expect(err).toContain(message);
  });
});

describe('a config file', () => {
  it.each([
    ['is not there', undefined, 'cannot be read'],
    ['is not JSON', '{ cluster: ', 'not JSON'],
    ['is a list', [], 'expected an object with'],
    ['has no apps', { cluster: { capacity: 10 } }, 'apps: expected at least one app'],
    ['has no cluster', { apps: { a: { guaranteed: 1 } } }, 'cluster.capacity and apps are needed'],
    [
      'has a misspelt option',
      { ...SMALL, cluster: { capacity: 300, maxcost: 1 } },
      "cluster.maxcost: no such field; did you mean 'maxCost'?",
    ],
    [
      'promises more than there is',
      { ...SMALL, apps: { api: { guaranteed: 300 } } },
      'guarantees of no more than 270 in all',
    ],
  ])('that %s is told with its name and its fault', async (what, content, message) => {
    const name = `${what.replaceAll(' ', '-')}.json`;
    const file = content === undefined ? join(dir, name) : fileOf(name, content);
    const { code, out, err } = await command(file, '--scenario', 'failover');
    expect([code, out]).toEqual([1, '']);
    expect(err).toContain(file);
    expect(err).toContain(message);
  });

  it('is summed up in words, beside what others make of it', async () => {
    const config = fileOf('small.json', SMALL);
    const { out } = await command(config, '--scenario', 'skew-overload', '--nodes', '3');
    const [, summary] = /\nIn short:\n([^]*?)\n\n/.exec(out)!;
    const percent = String.raw`\d+(\.\d)? %`;
    expect(summary!.split('\n')).toEqual([
      expect.stringMatching(
        `^  used of what could be had: at least ${percent} \\(fixed split ${percent}\\)$`,
      ),
      expect.stringMatching(`^  decided without waiting for the store: at least ${percent}$`),
      expect.stringMatching(
        /^ {2}calls to the store: at most [\d,.]+ a second \(call per request [\d,.]+\)$/,
      ),
      expect.stringMatching(`^  admitted of what the bound allows, in the worst span: ${percent}$`),
    ]);
  });

  it('is what the scenarios run on', async () => {
    const config = fileOf('small.json', SMALL);
    const { code, out } = await command(config, '--scenario', 'failover');
    // A bound of capacity × pace.
    expect(out).toContain('≤ 15 ');
    expect(code).toBe(0);
  });
});

describe('weir simulate, as it is built', () => {
  beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
  afterAll(stopAll);

  const script = join(root, 'bin/weir.mjs');
  const runBuilt = (...args: string[]): Promise<Finished> =>
    runToEnd(process.execPath, [script, 'simulate', ...args], { cwd: dir });

  it('prints a table, draws, and ends with 0 where all bars are met', async () => {
    const config = fileOf('built.json', SMALL);
    const names = ['failover', 'clock-back'];
    const asked = [config, ...names.flatMap((name) => ['--scenario', name])];
    const { code, stdout, stderr } = await runBuilt(...asked, '--svg', 'out/drawings');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('failover: the store loses its state\n');
    expect(stdout).toContain('2 of 2 bars met, 0 MISSED.');
    const rows = JSON.parse((await runBuilt(...asked, '--json')).stdout) as FigureRow[];
    expect(new Set(rows.map(({ scenario }) => scenario))).toEqual(new Set(names));
    for (const row of rows) {
      expect(Object.keys(row)).toEqual(['scenario', 'contender', 'figure', 'value', 'bar', 'ok']);
    }
    for (const name of names) {
      expect(existsSync(join(dir, `out/drawings/${name}.svg`))).toBe(true);
    }
  });

  it('ends with 1 and names the bar where one is missed', async () => {
    // A lease that is void before the answer to its call has come: nothing can be decided from it.
    const config = fileOf('brief.json', { ...SMALL, cluster: { capacity: 300, leaseTtl: '1ms' } });
    const { code, stdout } = await runBuilt('--scenario', 'scale', config);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^MISSED {2}scale: utilisation, 1 node 0.*, promised ≥ 0.97$/m);
  });

  it('ends with 1 and one line where the config is broken', async () => {
    const config = fileOf('broken.json', '{');
    const { code, stdout, stderr } = await runBuilt(config);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^.*broken\.json:1:2: not JSON: .*\n$/);
  });

  it('ends with 1 and says so where it cannot write', async () => {
    const config = fileOf('fine.json', SMALL);
    const args = ['--scenario', 'clock-back', config, '--svg', config];
    const { code, stderr } = await runBuilt(...args);
    expect(code).toBe(1);
    expect(stderr).toContain(`${join(config, 'clock-back.svg')}: cannot be written`);
  });
});
