import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { makeAppOnNest11, packPackage } from '../package/packed-package.js';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { runToEnd } from '../setup/run-to-end.js';
import { freePort } from '../support/free-port.js';
import { stopAll } from '../support/index.js';

let app: string;

beforeAll(async () => {
  await ensureBuilt();
  app = await makeAppOnNest11(await packPackage(), []);
  const name = '@nestjs/microservices';
  symlinkSync(join(root, 'test/nest11/node_modules', name), join(app, 'node_modules', name), 'dir');
}, BUILD_TIMEOUT_MS);

afterAll(stopAll);

describe('messages over TCP on Nest 11', () => {
  it('are limited as on Nest 12', async () => {
    const { code, stdout, stderr } = await runToEnd(process.execPath, ['microservice.cjs'], {
      cwd: app,
      env: { PORT: String(await freePort()) },
    });
    expect([stderr, code]).toEqual(['', 0]);
    const { version, answers, seen, dropped } = JSON.parse(stdout) as Record<string, unknown>;
    expect(version).toMatch(/^11\./);
    expect(answers).toEqual([
      6,
      6,
      {
        status: 'error',
        statusCode: 429,
        code: 'RATE_LIMITED',
        message: 'Too many requests',
        policy: 'two',
        retryAfterMs: expect.any(Number) as number,
      },
    ]);
    expect(seen).toEqual(['a']);
    expect(dropped).toEqual({ 'Orders.ordered': 2 });
  });
});

describe('protected methods on Nest 11', () => {
  it('are protected as on Nest 12', async () => {
    const { code, stdout, stderr } = await runToEnd(process.execPath, ['protect.cjs'], {
      cwd: app,
    });
    expect([stderr, code]).toEqual(['', 0]);
    const { version, answers } = JSON.parse(stdout) as Record<string, unknown>;
    expect(version).toMatch(/^11\./);
    expect(answers).toEqual([
      { id: 0, tag: 'own' },
      { id: 1, tag: 'each' },
      { id: 2, tag: 'made' },
      'PROTECTION_MISSING',
    ]);
  });
});
