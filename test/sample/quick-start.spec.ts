import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { runToEnd } from '../setup/run-to-end.js';
import { freePort } from '../support/free-port.js';
import { exited, spawnOwned, stopAll } from '../support/processes.js';
import { until } from '../support/until.js';
import { statusesIn, takeTour, tryLines } from './guides.js';

const main = join(root, 'build/sample/01-quick-start/main.js');

beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
afterAll(stopAll);

describe('the quick start', () => {
  let port: number;
  let app: ChildProcess;
  let written = '';

  beforeAll(async () => {
    port = await freePort();
    app = spawnOwned(process.execPath, [main], { env: { ...process.env, PORT: String(port) } });
    for (const stream of [app.stdout, app.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (written += text));
    }
    await until(() => written.includes('/orders/'), { timeoutMs: 20_000, what: 'the welcome' });
  });

  const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`http://localhost:${port}${path}`, { headers });

  /** All at once, so that a slow machine does not give time for tokens to come back. */
  const statuses = async (count: number, path: string, headers = {}): Promise<number[]> => {
    const answers = Array.from({ length: count }, () => get(path, headers));
    return (await Promise.all(answers)).map(({ status }) => status).sort();
  };

  it('says where it listens, and three things to try', () => {
    expect(written).toContain(`Listening on http://localhost:${port} `);
    const commands = written.split('\n').filter((line) => /^(for|seq|curl) /.test(line));
    expect(commands).toHaveLength(3);
    for (const command of commands) expect(command).toContain(`http://localhost:${port}/`);
  });

  it('lets five requests of an address pass, and tells the others when to come back', async () => {
    expect(await statuses(7, '/hello')).toEqual([200, 200, 200, 200, 200, 429, 429]);
    const refused = await get('/hello');
    expect(refused.status).toBe(429);
    expect(['1', '2']).toContain(refused.headers.get('retry-after'));
    expect(refused.headers.get('ratelimit-policy')).toBe('"hello";q=5;w=10');
    expect(refused.headers.get('ratelimit')).toMatch(/^"hello";r=0;t=[12]$/);
    expect(await refused.json()).toMatchObject({ status: 429, 'violated-policies': ['hello'] });
  });

  it('serves the same address again after the time it named', async () => {
    await statuses(5, '/hello');
    const { status, headers } = await get('/hello');
    expect(status).toBe(429);
    const dueMs = performance.now() + Number(headers.get('retry-after')) * 1000;
    await until(() => performance.now() >= dueMs);
    expect((await get('/hello')).status).toBe(200);
  });

  it('gives each user three reports, and ten to those of the better tier', async () => {
    const ofTier = (user: string, tier: string): Record<string, string> => ({
      'x-user': user,
      'x-tier': tier,
    });
    expect(await statuses(5, '/report', ofTier('eve', 'normal'))).toEqual([
      200, 200, 200, 429, 429,
    ]);
    expect(await statuses(5, '/report', ofTier('eve', 'vip'))).toEqual(Array(5).fill(200));
    const { headers } = await get('/report', ofTier('eve', 'vip'));
    expect(headers.get('ratelimit-policy')).toMatch('"report";q=10;');
    expect((await get('/report', ofTier('bob', 'normal'))).status).toBe(200);
  });

  it('takes an unknown tier for the ordinary one, and callers without a name for one caller', async () => {
    const first = await get('/report', { 'x-tier': 'emperor' });
    expect(first.headers.get('ratelimit-policy')).toMatch('"report";q=3;');
    expect(await statuses(4, '/report')).toEqual([200, 200, 429, 429]);
  });

  it('shows on its tour what it promises: limits, tiers, orders in the order in which they came', async () => {
    expect(await takeTour('01-quick-start')).toContain('one every 500 ms');
  });

  it('says at GET / what to try, in lines that work as they stand', async () => {
    const [hello, report, orders] = await tryLines(`http://127.0.0.1:${port}`);
    // Others have asked before; what the limit gives is seen on the tour.
    expect(hello!.output).toMatch(/^((200|429) ){7}HTTP\/1.1 (200|429) /);
    expect(statusesIn(hello!.output, 200)).toBeLessThanOrEqual(5 + hello!.seconds / 2);
    expect(statusesIn(report!.output.split('vip')[0]!, 429)).toBeGreaterThan(0);
    expect(report!.output).toMatch(/normal\n(200 ){5}vip\n$/);
    const places = [...orders!.output.matchAll(/"place":(\d+)/g)].map(([, place]) => Number(place));
    expect(places.toSorted((a, b) => a - b)).toEqual(places);
    expect(places).toHaveLength(5);
  });

  it('refuses orders that would have to wait for too long', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, id) => get(`/orders/${id}`)));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    // The last order of the test before may still be in the bucket.
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(4);
    for (const { headers } of refused)
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  });

  it('says in one line that the port is taken, and how to choose another', async () => {
    const second = await runToEnd(process.execPath, [main], {
      cwd: root,
      env: { PORT: String(port) },
    });
    expect(second.code).toBe(1);
    expect(second.output).toBe(
      `Port ${port} is taken. Choose another: PORT=${port + 1} npm start\n`,
    );
  });

  it('says what a port is when it is given something else', async () => {
    const wrong = await runToEnd(process.execPath, [main], { cwd: root, env: { PORT: 'http' } });
    expect(wrong.code).toBe(1);
    expect(wrong.output).toBe('PORT must be a number from 0 to 65535, and is "http".\n');
  });

  it('ends when it is asked to, and wrote nothing but its welcome and what an unknown tier means', async () => {
    app.kill('SIGTERM');
    await exited(app);
    expect(app.signalCode).toBe('SIGTERM');
    const lines = written.trim().split('\n');
    expect(lines.slice(13).join('')).toContain('tier "emperor" is none of its tiers (normal, vip)');
    expect(lines).toHaveLength(15);
  });
});
