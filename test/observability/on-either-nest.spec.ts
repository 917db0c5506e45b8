import { execFile } from 'node:child_process';
import { existsSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { directoryOf, NEST_MAJORS } from '../support/nest/nest-majors.js';
import { parseExposition } from './exposition.js';

/** An application of the built package, as plain JavaScript: it decides a little, and shows what it has counted. */
const APPLICATION = `
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RateLimiter, RateLimitModule, RateLimitMonitor, verdict } from 'nestjs-weir';
import { RateLimitPrometheusModule } from 'nestjs-weir/prometheus';
import { register } from 'prom-client';
class App {}
const policies = { api: { rate: 3, period: '1h' } };
Module({ imports: [RateLimitModule.forRoot({ policies }), RateLimitPrometheusModule.forRoot()] })(App);
const lines = [];
const logger = { log: (text) => lines.push(text), warn() {}, error() {} };
const app = await NestFactory.createApplicationContext(App, { logger });
const limiter = app.get(RateLimiter);
for (let i = 0; i < 5; i++) await limiter.tryAcquire({ policy: 'api', key: 'k' });
const monitor = app.get(RateLimitMonitor);
await new Promise(setImmediate);
const told = {
  text: monitor.text(),
  scraped: await register.metrics(),
  stats: limiter.stats().policies.api,
  verdict: verdict(monitor.state()).kind,
  start: lines.filter((text) => text.startsWith('weir ')),
};
await app.close();
process.stdout.write(JSON.stringify(told));
`;

describe('the monitor', () => {
  beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);

  it.each(NEST_MAJORS)('counts and is scraped on Nest %i', async (major) => {
    const directory = directoryOf(major);
    const peer = join(directory, 'node_modules/prom-client');
    if (major === 11 && !existsSync(peer)) {
      symlinkSync(join(root, 'node_modules/prom-client'), peer, 'dir');
    }
    const file = join(directory, 'watched-app.mjs');
    writeFileSync(file, APPLICATION);
    const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: directory });
    const told = JSON.parse(stdout) as {
      text: string;
      scraped: string;
      stats: { allowed: number; denied: number };
      verdict: string;
      start: string[];
    };
    expect(told.stats).toMatchObject({ allowed: 3, denied: 2 });
    for (const exposition of [told.text, told.scraped]) {
      const { lines } = parseExposition(exposition);
      const count = (outcome: string): number | undefined =>
        lines.find(
          ({ name, labels }) =>
            name === 'weir_decisions_total' &&
            labels.outcome === outcome &&
            labels.source === 'local',
        )?.value;
      expect([count('allowed'), count('denied')]).toEqual([3, 2]);
    }
    expect(told.verdict).toBe('learning');
    expect(told.start).toHaveLength(1);
  });
});
