import { readFileSync } from 'node:fs';
import { FAMILIES } from '../../lib/observability/families.js';
import { escapedValue, textOf } from '../../lib/observability/export/text.js';
import { LogLinear } from '../../lib/common/histogram.js';
import { parseExposition } from './exposition.js';

describe('the metrics', () => {
  it('have names as both worlds want them, each once', () => {
    for (const { name, otel, kind, unit, labels } of FAMILIES) {
      expect(name).toMatch(/^weir_[a-z_]+$/);
      expect(name.endsWith('_total')).toBe(kind === 'counter');
      expect(name.endsWith('_seconds')).toBe(unit === 's');
      expect(otel).toMatch(/^weir(\.[a-z_]+)+$/);
      for (const label of labels) expect(label).toMatch(/^[a-z]+$/);
    }
    expect(new Set(FAMILIES.map(({ name }) => name)).size).toBe(FAMILIES.length);
    expect(new Set(FAMILIES.map(({ otel }) => otel)).size).toBe(FAMILIES.length);
  });

  it('are all in docs/metrics.md, and no others', () => {
    const page = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
    const rows = [...page.matchAll(/^\| `(weir_\w+)`\s+\| (\w+)\s+\| (.*?)\s+\|/gm)];
    const told = rows.map(([, name, kind, labels]) => `${name} ${kind} ${labels}`.trimEnd());
    expect(told).toEqual(
      FAMILIES.map(({ name, kind, labels }) => {
        return `${name} ${kind} ${labels.map((label) => `\`${label}\``).join(', ')}`.trimEnd();
      }),
    );
  });
});

describe('the text format', () => {
  const family = (value: number | LogLinear, label = 'x') => ({
    ...{ name: 'weir_x', otel: 'weir.x', unit: '', help: 'Some\nhelp', labels: ['policy'] },
    kind: value instanceof LogLinear ? ('histogram' as const) : ('gauge' as const),
    samples: [{ labels: [label], value }],
  });

  it('is read as it was meant, whatever is in a name', () => {
    const name = 'a"b\\c\nd\u0000\u001b[2J\u202eé';
    const { lines } = parseExposition(textOf([family(3, name)]));
    expect(lines).toEqual([{ name: 'weir_x', labels: { policy: 'a"b\\c·d··[2J·é' }, value: 3 }]);
    expect(escapedValue('x'.repeat(1000))).toHaveLength(128);
  });

  it('has cumulative buckets that end with all, the sum in seconds and the count', () => {
    const times = new LogLinear();
    for (const micros of [100, 128, 129, 20_000_000]) times.record(micros);
    const { lines, types } = parseExposition(textOf([family(times)]));
    expect(types.get('weir_x')).toBe('histogram');
    const bucket = (le: string) => lines.find(({ labels }) => labels.le === le)?.value;
    expect([bucket('0.000128'), bucket('0.000256'), bucket('8.388608'), bucket('+Inf')]).toEqual([
      ...[2, 3, 3, 4],
    ]);
    const values = lines.filter(({ name }) => name.endsWith('_bucket')).map(({ value }) => value);
    expect(values).toEqual(values.toSorted((a, b) => a - b));
    expect(lines.find(({ name }) => name === 'weir_x_count')?.value).toBe(4);
    expect(lines.find(({ name }) => name === 'weir_x_sum')?.value).toBeCloseTo(20.000357, 9);
  });
});
