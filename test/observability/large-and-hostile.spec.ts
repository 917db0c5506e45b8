import { type FleetState } from '../../lib/observability/state.js';
import { LogLinear } from '../../lib/common/histogram.js';
import { type Alert } from '../../lib/observability/alerts/alert.js';
import { logSink } from '../../lib/observability/alerts/sinks/log.js';
import { payloadOf } from '../../lib/observability/alerts/sinks/payloads.js';
import { textOf } from '../../lib/observability/export/text.js';
import { Fleet } from '../../lib/observability/fleet/fleet.js';
import { decodeMerged } from '../../lib/observability/fleet/merged.js';
import { encodeSnapshot } from '../../lib/observability/fleet/snapshot.js';
import { OTHER, Reading, SeriesTable } from '../../lib/observability/series-table.js';
import { MemoryBoard } from '../../lib/stores/memory/memory-board.js';
import { ManualClock } from '../support/manual-clock.js';
import { parseExposition } from './exposition.js';
import { nothingElse, series, snapshot } from './snapshots.js';

describe('a large service', () => {
  it('of 5,000 policies and 500 resources has the busiest by name, and the rest as one', () => {
    const [table, reading] = [new SeriesTable(100), new Reading()];
    for (let index = 0; index < 5000; index++) {
      reading.of('policy', `policy-${index}`).count = index + 1;
    }
    for (let index = 0; index < 500; index++) {
      reading.of('resource', `resource-${index}`).count = 1;
    }
    table.read(1_000_000, 1000, reading);
    expect(table.all().length).toBeLessThanOrEqual(104);
    expect(table.isNamed('policy', 'policy-4999')).toBe(true);
    const other = table.find('policy', OTHER)!.seconds.at(1)!;
    const named = table.all().filter(({ kind, of }) => kind === 'policy' && of !== OTHER);
    const sum = named.reduce((all, one) => all + one.seconds.at(1)!.count, other.count);
    expect(sum).toBe((5000 * 5001) / 2);
    expect(table.dropped).toBe(5500 - 100);
    expect(table.all().reduce((bytes, one) => bytes + one.bytes, 0)).toBeLessThan(4 * 2 ** 20);
  });

  it('of 1,000 nodes writes 8 kB each, and 64 kB of all', async () => {
    const times = new LogLinear();
    for (let micros = 1; micros < 60_000_000; micros *= 1.2) times.record(micros);
    const clock = new ManualClock(0);
    const board = new MemoryBoard(clock);
    const all = [
      series('total', '', 1000, { times }),
      series('store', '', 1000, { times }),
      ...Array.from({ length: 100 }, (_, index) =>
        series('policy', `a policy with a long name, number ${index}`, 100 - index),
      ),
    ];
    const text = encodeSnapshot(snapshot('NODE', all));
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(8192);
    for (let node = 0; node < 1000; node++) {
      await board.write(`node-${node}`, text.replace('"NODE"', `"node-${node}"`), 1e9);
    }
    const failed: unknown[] = [];
    const fleet = new Fleet({
      ...{ nodeId: 'node-0', board, clock, maxSeries: 100, nodes: () => 1000 },
      snapshot: () => snapshot('node-0', all),
      ...{ isAlarmed: () => false, about: nothingElse, useSalt: () => {} },
      failed: (error) => failed.push(error),
    });
    clock.advance(5000);
    fleet.tick(clock.now());
    for (let turn = 0; turn < 60; turn++) await clock.advanceAsync(0);
    const merged = (await board.get('merged'))!;
    expect(failed).toEqual([]);
    expect(Buffer.byteLength(merged)).toBeLessThanOrEqual(65_536);
    const state = decodeMerged(merged) as FleetState;
    expect(state.nodeCount).toBe(1000);
    expect(state.series.slice(0, 2).map(({ name }) => name)).toEqual(['total', 'store']);
  });
});

const HOSTILE = 'a"\\\u001b[31m\n\u0000\u202e<script>';

describe('a name with control characters', () => {
  const alert: Alert = {
    ...{ rule: 'denialRise', series: `policy:${HOSTILE}`, state: 'firing', severity: 'warning' },
    ...{ text: `policy:${HOSTILE} is denied`, value: 1, threshold: 0.5, sinceMs: 0, muted: false },
    ...{ fingerprint: 'f', nodeId: HOSTILE, cluster: HOSTILE },
  };
  const isText = (text: string): boolean => !/[\p{Cc}\u202e]/u.test(text);

  it('is one line of the log', () => {
    const lines: string[] = [];
    const log = (text: string): void => void lines.push(text);
    void logSink({ log, warn: log, error: log }).send([alert]);
    expect(lines).toHaveLength(1);
    expect(isText(lines[0]!)).toBe(true);
  });

  it('is text for Slack, Alertmanager and others', () => {
    const { text } = payloadOf('slack', [alert], 0) as { text: string };
    expect(text).not.toContain('<script>');
    for (const format of ['weir', 'alertmanager', 'alertmanager-webhook'] as const) {
      const body = JSON.parse(JSON.stringify(payloadOf(format, [alert], 0))) as unknown;
      const labels = JSON.stringify(body).match(/"(?:series|cluster|nodeId)":"(?:[^"\\]|\\.)*"/g)!;
      expect(labels.length).toBeGreaterThan(0);
      expect(labels.every((label) => !/\\u00|\\n|\u202e/.test(label))).toBe(true);
    }
  });

  it('is escaped in the exposition, and a label of it can be read back', () => {
    const family = {
      ...{ name: 'weir_decisions_total', otel: '', unit: '', kind: 'counter' as const, help: 'h' },
      ...{ labels: ['policy'], samples: [{ labels: [HOSTILE.repeat(20)], value: 1 }] },
    };
    const { lines } = parseExposition(textOf([family]));
    expect(lines).toHaveLength(1);
    expect([...lines[0]!.labels.policy!].length).toBeLessThanOrEqual(128);
  });
});
