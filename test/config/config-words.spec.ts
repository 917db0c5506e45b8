import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Logger, Module, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  RateLimitConfig,
  RateLimitModule,
  type ConfigRefusal,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { makeTempDir } from '../support/processes.js';
import { until } from '../support/index.js';

/** The log lines of an application about its configuration. */
describe('in one line each, an application says', () => {
  let app: INestApplicationContext;
  let lines: string[];

  beforeEach(() => {
    lines = [];
    for (const level of ['warn', 'error'] as const) {
      vi.spyOn(Logger.prototype, level).mockImplementation((line: unknown) => {
        lines.push(String(line));
      });
    }
  });

  afterEach(async () => {
    await app.close();
    vi.restoreAllMocks();
  });

  async function start(options: RateLimitModuleInput): Promise<void> {
    @Module({ imports: [RateLimitModule.forRoot({ policies: { api: { rate: 5 } }, ...options })] })
    class AppModule {}
    app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  }

  it('what is wrong with a file, and what holds instead', async () => {
    const file = join(makeTempDir(), 'limits.yaml');
    await start({ config: { file, filePoll: '20ms' } });
    expect(lines).toEqual([
      expect.stringMatching(
        /limits.yaml: cannot be read \(ENOENT: .*\); it is left out until it can be used$/,
      ),
    ]);
    const refused: ConfigRefusal[] = [];
    app.get(RateLimitConfig).refused$.subscribe((refusal) => refused.push(refusal));
    writeFileSync(file, 'policies:\n  api: { rate: 7 }\n');
    await until(() => app.get(RateLimitConfig).current().revision === 2);
    writeFileSync(file, 'policies:\n  api: { rate: 7/mni, brust: 1 }\n');
    await until(() => lines.length === 2);
    expect(lines[1]).toMatch(
      /^2 faults in .*limits.yaml: policies.api.rate: .*; policies.api.brust: .*; the last good one stays$/,
    );
    writeFileSync(file, 'policies: {');
    await until(() => lines.length === 3);
    expect(refused).toMatchObject([
      { revision: 0, kind: 'invalid' },
      { revision: 0, kind: 'unreadable' },
    ]);
  });

  it('which source failed, and why', async () => {
    const cause = new Error('connect ECONNREFUSED');
    const source = { read: () => Promise.reject(new Error('fetch failed', { cause })) };
    await start({ config: { source } });
    expect(lines).toEqual([
      'config.source: fetch failed (connect ECONNREFUSED); it is left out until it can be used',
    ]);
  });

  it('why Redis cannot be asked', async () => {
    await start({ store: { type: 'redis', url: 'redis://127.0.0.1:1' } });
    expect(lines).toEqual([
      'the configuration cannot be read from Redis, what this process brings along stays in use, and without Redis ' +
        'each policy goes by its failureMode: ' +
        'store unavailable: no answer within 1000 ms (connect ECONNREFUSED 127.0.0.1:1)',
    ]);
  });
});
