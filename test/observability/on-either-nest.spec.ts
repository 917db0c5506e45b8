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
import { RateLimitOtelModule } from 'nestjs-weir/otel';
import { RateLimitPrometheusModule } from 'nestjs-weir/prometheus';
import { RateLimitHealthIndicator } from 'nestjs-weir/terminus';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { register } from 'prom-client';
class Reader extends MetricReader {
  async onShutdown() {}
  async onForceFlush() {}
}
const reader = new Reader();
const meterProvider = new MeterProvider({ readers: [reader] });
class App {}
const policies = { api: { rate: 3, period: '1h' } };
const imports = [
  RateLimitModule.forRoot({ policies }),
  RateLimitPrometheusModule.forRoot(),
  RateLimitOtelModule.forRoot({ meterProvider }),
  TerminusModule.forRoot({ logger: false }),
];
Module({ imports, providers: [RateLimitHealthIndicator] })(App);
const lines = [];
const logger = { log: (text) => lines.push(text), warn() {}, error() {} };
const app = await NestFactory.createApplicationContext(App, { logger });
const limiter = app.get(RateLimiter);
for (let i = 0; i < 5; i++) await limiter.tryAcquire({ policy: 'api', key: 'k' });
const monitor = app.get(RateLimitMonitor);
await new Promise(setImmediate);
const { resourceMetrics } = await reader.collect();
const metrics = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics);
const decisions = metrics.find(({ descriptor }) => descriptor.name === 'weir.decisions').dataPoints;
const indicator = app.get(RateLimitHealthIndicator);
const health = async () => {
  const { status, details } = await app.get(HealthCheckService).check([() => indicator.check()]);
  return { status, ...details.weir };
};
const well = await health();
const known = monitor.health();
monitor.health = () => ({ ...known, store: 'away' });
const told = {
  health: [well, await health()],
  otel: decisions.map(({ attributes, value }) => [...Object.values(attributes), value].join(' ')),
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

  it.each(NEST_MAJORS)(
    'counts, is scraped, is read by OpenTelemetry and answers terminus on Nest %i',
    async (major) => {
      const directory = directoryOf(major);
      for (const peer of major === 11 ? ['prom-client', '@opentelemetry'] : []) {
        const path = join(directory, 'node_modules', peer);
        if (!existsSync(path)) symlinkSync(join(root, 'node_modules', peer), path, 'dir');
      }
      const file = join(directory, 'watched-app.mjs');
      writeFileSync(file, APPLICATION);
      const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: directory });
      const told = JSON.parse(stdout) as {
        health: object[];
        otel: string[];
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
      expect(told.otel).toContain('api allowed local 3');
      expect(told.otel).toContain('api denied local 2');
      expect(told.health[0]).toMatchObject({ status: 'up', store: 'memory' });
      // The state in between is one of the later terminus.
      const away = major === 11 ? { status: 'up', impaired: true } : { status: 'degraded' };
      expect(told.health[1]).toMatchObject({ ...away, store: 'away' });
      expect(told.verdict).toBe('learning');
      expect(told.start).toHaveLength(1);
    },
  );
});
