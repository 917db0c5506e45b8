import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { runToEnd } from '../setup/run-to-end.js';
import { exited, makeTempDir, spawnOwned, stopAll } from '../support/processes.js';
import { until } from '../support/until.js';
import { RunningSample } from './running-sample.js';

beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
afterAll(stopAll);

const WAYS = {
  'in one process': { args: [], children: 0 },
  // The shell of Redis, what ends it, Redis, and the nodes.
  'in three processes': { args: ['--redis'], children: 6 },
} as const;
const SETTINGS = { REDIS_URL: '', PORT: '0' };

const addressIn = ({ written }: RunningSample): string =>
  /http:\/\/127\.0\.0\.1:\d+/.exec(written)![0];

const isGone = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
};

const allGone = (pids: readonly number[]): Promise<boolean> =>
  until(() => pids.every(isGone), { what: 'the end of all processes', timeoutMs: 60_000 });

async function press(address: string, button: string): Promise<void> {
  const { status } = await fetch(`${address}/weir/api/actions/${encodeURIComponent(button)}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-weir-request': '1', origin: address },
    body: '{}',
  });
  expect(status).toBe(200);
}

describe.each(Object.entries(WAYS))('the tour %s', (_, { args, children }) => {
  // A terminal tells the whole group: Ctrl-C, and its own end.
  it.each([
    { signal: 'SIGINT', button: 'Store away' },
    { signal: 'SIGHUP', button: 'Burst' },
  ] as const)('ends with all it has started by $signal, after $button', async (one) => {
    const options = { inOwnGroup: true };
    const sample = await RunningSample.start('00-tour', SETTINGS, 'Ctrl-C', args, options);
    const started = await sample.descendants();
    expect(started).toHaveLength(children);
    await press(addressIn(sample), one.button);
    expect(await sample.stopGroup(one.signal)).toBe(0);
    await allGone(started);
    expect(sample.written).not.toMatch(/Unhandled|ERR_|TypeError/);
  });
});

describe('the tour', () => {
  it('ends with all it has started while it is starting', async () => {
    const options = { inOwnGroup: true };
    const sample = await RunningSample.start('00-tour', SETTINGS, '', ['--redis'], options);
    const started = await until(async () => {
      const found = await sample.descendants();
      return found.length === WAYS['in three processes'].children ? found : undefined;
    });
    await sample.stopGroup('SIGINT');
    await allGone(started);
    expect(sample.written).not.toMatch(/Unhandled|ERR_|TypeError/);
  });

  it('ends when the end of the terminal is told to npm start alone', async () => {
    const env = { ...process.env, ...SETTINGS };
    const start = spawnOwned(process.execPath, ['scripts/start.mjs'], { cwd: root, env });
    let written = '';
    start.stdout!.setEncoding('utf8').on('data', (text: string) => (written += text));
    const [address] = await until(() => /http:\/\/127\.0\.0\.1:\d+/.exec(written), {
      what: 'its address',
      timeoutMs: 120_000,
    });
    start.kill('SIGHUP');
    await exited(start);
    await expect(fetch(address)).rejects.toThrow();
  });

  it('opens the dashboard of this machine in the browser when it is asked to', async () => {
    const folder = makeTempDir();
    const told = join(folder, 'told');
    for (const name of ['xdg-open', 'open']) {
      writeFileSync(join(folder, name), `#!/bin/sh\necho "$@" >> ${told}\n`);
      chmodSync(join(folder, name), 0o755);
    }
    const settings = { ...SETTINGS, PATH: folder };
    const sample = await RunningSample.start('00-tour', settings, 'Ctrl-C', ['--open']);
    const opened = await until(() => readFileSync(told, 'utf8'), { what: 'a browser' });
    expect(opened).toBe(`${addressIn(sample)}/weir/\n`);
    await sample.stop();
  });

  it('says in one line that no browser can be opened, and runs', async () => {
    const settings = { ...SETTINGS, PATH: makeTempDir() };
    const sample = await RunningSample.start('00-tour', settings, 'No browser', ['--open']);
    const [, after = ''] = sample.written.split('Ctrl-C\n');
    expect(after.trim().split('\n')).toEqual([
      expect.stringMatching(/^No browser +(?:xdg-)?open does not run .*open the address by hand$/),
    ]);
    expect((await fetch(addressIn(sample))).status).toBe(200);
    expect(await sample.stop()).toBe(0);
  });

  it('says in one line what to do where no Redis can be had', async () => {
    const env = { REDIS_SERVER_BIN: '/nowhere', REDIS_URL: '' };
    const args = ['scripts/start.mjs', '--redis'];
    const { code, stderr } = await runToEnd(process.execPath, args, { cwd: root, env });
    expect(code).toBe(1);
    expect(stderr).toBe(
      'REDIS_SERVER_BIN=/nowhere does not run as redis-server: correct the path or unset it, ' +
        'or set REDIS_URL to a Redis that runs, or take the tour without one: npm start\n',
    );
  });
});
