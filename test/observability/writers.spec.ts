import { Test } from '@nestjs/testing';
import { trace, type Span } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
  type ResourceMetrics,
} from '@opentelemetry/sdk-metrics';
import { RateLimitMonitor } from 'nestjs-weir';
import { RateLimitOtelModule } from 'nestjs-weir/otel';
import { RateLimitPrometheusModule } from 'nestjs-weir/prometheus';
import { Registry } from 'prom-client';
import { ManualClock } from '../support/manual-clock.js';
import { type HttpApp } from '../support/nest/http-apps.js';
import { parseExposition, type Line } from './exposition.js';
import { startShop } from './watched-app.js';

const byName = (lines: readonly Line[]) =>
  lines
    .filter(({ name }) => !name.startsWith('weir_response'))
    .map(({ name, labels, value }) => {
      const sorted = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
      return `${name} ${JSON.stringify(sorted)} ${value}`;
    })
    .sort();

async function visit({ get }: HttpApp, ...paths: string[]): Promise<void> {
  for (const path of paths) await (await get(`/${path}`)).text();
}

describe('RateLimitPrometheusModule', () => {
  it('has in a registry of prom-client what text() has', async () => {
    const registry = new Registry();
    const imports = [RateLimitPrometheusModule.forRoot({ registry })];
    // The figures stand still between the two looks.
    const shop = await startShop('express', { clock: new ManualClock() }, imports);
    await visit(shop, 'search', 'search', 'search', 'search', 'stock', 'page', 'page');
    const { lines } = parseExposition(await registry.metrics());
    const own = parseExposition(shop.app.get(RateLimitMonitor).text());
    expect(byName(lines)).toEqual(byName(own.lines));
    expect(lines.length).toBeGreaterThan(50);
    await shop.close();
    expect(await registry.metrics()).toBe('\n');
  });

  it('adds two applications of one process up', async () => {
    const registry = new Registry();
    const imports = [RateLimitPrometheusModule.forRoot({ registry })];
    const shops = [
      await startShop('express', {}, imports),
      await startShop('fastify', {}, imports),
    ];
    for (const shop of shops) await visit(shop, 'search');
    const passed = async () =>
      parseExposition(await registry.metrics()).lines.find(
        ({ name, labels }) => name === 'weir_requests_total' && labels.outcome === 'passed',
      )?.value;
    expect(await passed()).toBe(2);
    await shops[0]!.close();
    expect(await passed()).toBe(1);
    await shops[1]!.close();
  });

  it('names counters as OpenMetrics wants them in a registry of that', async () => {
    const registry = new Registry();
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never);
    const shop = await startShop('express', {}, [RateLimitPrometheusModule.forRoot({ registry })]);
    await visit(shop, 'search');
    const text = await registry.metrics();
    expect(text).toContain('# TYPE weir_requests counter');
    expect(text).toContain('weir_requests_total{transport="http",outcome="passed"} 1');
    expect(text).not.toContain('_total_total');
    await shop.close();
  });

  it('uses the registry of prom-client if none is given', async () => {
    const { register } = await import('prom-client');
    const shop = await startShop('express', {}, [RateLimitPrometheusModule.forRoot()]);
    expect(await register.metrics()).toContain('weir_build_info{version="');
    await shop.close();
    expect(await register.metrics()).not.toContain('weir_');
  });

  it('says what is missing without RateLimitModule', async () => {
    const imports = [RateLimitPrometheusModule.forRoot({ registry: new Registry() })];
    await expect(Test.createTestingModule({ imports }).compile()).rejects.toThrow(
      'RateLimitPrometheusModule needs RateLimitModule',
    );
  });

  it('has nothing to show with `monitor: false`', async () => {
    const registry = new Registry();
    const imports = [RateLimitPrometheusModule.forRoot({ registry })];
    const shop = await startShop('express', { monitor: false }, imports);
    expect(await registry.metrics()).toBe('\n');
    await shop.close();
  });
});

describe('RateLimitOtelModule', () => {
  async function collect(exporter: InMemoryMetricExporter, provider: MeterProvider) {
    exporter.reset();
    await provider.forceFlush();
    const [all] = exporter.getMetrics() as [ResourceMetrics | undefined];
    return (all?.scopeMetrics ?? []).flatMap(({ metrics }) => metrics);
  }

  function meter() {
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 2 ** 30 });
    return { exporter, provider: new MeterProvider({ readers: [reader] }) };
  }

  it('gives a real reader what families() has', async () => {
    const { exporter, provider } = meter();
    const imports = [RateLimitOtelModule.forRoot({ meterProvider: provider })];
    const shop = await startShop('express', { clock: new ManualClock() }, imports);
    await visit(shop, 'search', 'search', 'search', 'search', 'stock', 'page', 'page');
    const metrics = await collect(exporter, provider);
    const families = shop.app.get(RateLimitMonitor).families();
    const told = metrics
      .filter(({ descriptor }) => !/\.p(50|99)$/.test(descriptor.name))
      .flatMap(({ descriptor, dataPoints }) =>
        dataPoints.map(({ attributes, value }) => {
          const values = Object.values(attributes).map(String);
          return `${descriptor.name} ${values.join(' ')} ${JSON.stringify(value)}`;
        }),
      );
    const own = families
      .filter(({ kind }) => kind !== 'histogram')
      .flatMap(({ otel, samples }) =>
        samples.map(({ labels, value }) => `${otel} ${labels.join(' ')} ${JSON.stringify(value)}`),
      );
    expect(told.sort()).toEqual(own.sort());
    const units = new Map(metrics.map(({ descriptor }) => [descriptor.name, descriptor.unit]));
    expect(units.get('weir.requests')).toBe('{request}');
    const monitor = shop.app.get(RateLimitMonitor);
    let asked = 0;
    monitor.families = () => (asked++, []);
    await shop.close();
    await collect(exporter, provider);
    expect(asked).toBe(0);
    await provider.shutdown();
  });

  it('adds an event to the active span of a denied request', async () => {
    const events: unknown[] = [];
    const span = { addEvent: (...event: unknown[]) => events.push(event) } as unknown as Span;
    const spied = activeSpanIs(() => span);
    const { provider } = meter();
    const imports = [RateLimitOtelModule.forRoot({ meterProvider: provider, spans: true })];
    const shop = await startShop('express', {}, imports);
    await visit(shop, 'search', 'search', 'search', 'search');
    spied.restore();
    expect(events).toEqual([
      ['weir.denied', expect.objectContaining({ 'weir.policy': 'search', 'weir.tier': 'policy' })],
    ]);
    await shop.close();
    await provider.shutdown();
  });
});

/** The API reads the active span from a context manager; here it is given. */
function activeSpanIs(getActiveSpan: () => Span) {
  const before = trace.getActiveSpan;
  trace.getActiveSpan = getActiveSpan;
  return { restore: () => void (trace.getActiveSpan = before) };
}
