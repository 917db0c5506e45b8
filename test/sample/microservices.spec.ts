import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { runToEnd } from '../setup/run-to-end.js';
import { freePort } from '../support/free-port.js';
import { exited, spawnOwned, stopAll } from '../support/processes.js';
import { until } from '../support/until.js';
import { statusesIn, takeTour, tryLines } from './guides.js';

const main = join(root, 'build/sample/04-microservices/main.js');

beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
afterAll(stopAll);

describe('the sample of microservices', () => {
  let env: Record<string, string>;
  let app: ChildProcess;
  let written = '';

  beforeAll(async () => {
    env = { PORT: String(await freePort()), SERVICE_PORT: String(await freePort()) };
    app = spawnOwned(process.execPath, [main], { env: { ...process.env, ...env } });
    for (const stream of [app.stdout, app.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (written += text));
    }
    await until(() => written.includes('/visits/home'), { timeoutMs: 20_000, what: 'the welcome' });
  });

  const ask = (path: string, method = 'GET'): Promise<Response> =>
    fetch(`http://localhost:${env['PORT']}${path}`, { method });

  it('limits quotes by tenant, and the gateway passes the denial on', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask('/quotes/acme/lamp')));
    expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(3);
    const denied = answers.filter(({ status }) => status === 429);
    // A token comes back every half second, and they are not that slow.
    expect(denied.length).toBeGreaterThan(5);
    expect(denied[0]!.headers.get('retry-after')).toBe('1');
    expect(await denied[0]!.json()).toMatchObject({ code: 'RATE_LIMITED', policy: 'quotes' });
    expect((await ask('/quotes/umbrella/lamp')).status).toBe(200);
  });

  it('says at GET / what to try, in lines that work as they stand', async () => {
    const [quotes, patient, visits] = await tryLines(`http://localhost:${env['PORT']}`);
    expect(statusesIn(quotes!.output, 200)).toBeLessThanOrEqual(4 + 2 * quotes!.seconds);
    expect(patient!.output.match(/"price"/g)).toHaveLength(6);
    expect(visits!.output).toMatch(/^(202 ){8}/);
    await until(async () => {
      const { dropped } = (await (await ask('/visits')).json()) as { dropped: number };
      return dropped === 3;
    });
    expect(await (await ask('/visits')).json()).toEqual({ pages: { home: 5 }, dropped: 3 });
  });

  it('shows on its tour what it promises: quotes, patience, events that are dropped', async () => {
    const ports = { PORT: String(await freePort()), SERVICE_PORT: String(await freePort()) };
    expect(await takeTour('04-microservices', ports)).toContain('5 counted, 3 dropped');
  });

  it('says in one line that a port is taken, and how to choose another', async () => {
    const second = await runToEnd(process.execPath, [main], {
      cwd: root,
      env: { ...env, PORT: String(await freePort()) },
    });
    expect(second.code).toBe(1);
    expect(second.output).toMatch(
      /^Port \d+ is taken. Choose another: SERVICE_PORT=\d+ npm run sample:microservices\n$/,
    );
  });

  it('says what a port is when it is given something else', async () => {
    const wrong = await runToEnd(process.execPath, [main], { cwd: root, env: { PORT: 'http' } });
    expect(wrong.code).toBe(1);
    expect(wrong.output).toBe('PORT must be a number from 1 to 65535, and is "http".\n');
  });

  it('ends when it is asked to, and logged the dropped events in one line', async () => {
    app.kill('SIGTERM');
    await exited(app);
    expect(app.signalCode).toBe('SIGTERM');
    const logged = written.split('\n').filter((line) => line.includes('[Nest]'));
    expect(logged).toEqual([expect.stringContaining('QuotesController.visited: 1 event over')]);
  });
});
