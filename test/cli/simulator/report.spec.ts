import { Findings, inShort } from '../../../lib/cli/simulator/report/findings.js';
import { formatTable } from '../../../lib/cli/simulator/report/table.js';
import { linearTicks, logTicks, toSvg } from '../../../lib/cli/simulator/report/svg.js';
import { type Panel } from '../../../lib/cli/simulator/report/chart.js';

describe('findings', () => {
  it('judge by their bars, and a figure that is no number meets none', () => {
    const findings = new Findings('s');
    findings.atLeast('weir', 'a', 0.99, 0.99);
    findings.atLeast('weir', 'b', 0.98, 0.99);
    findings.atMost('weir', 'c', 1, 1);
    findings.atMost('weir', 'd', NaN, 1);
    findings.atLeast('weir', 'e', NaN, 1);
    findings.show('weir', 'f', 5);
    findings.atLeastIf('weir', 'g', 0, undefined);
    findings.atMostIf('weir', 'h', 2, 1);
    expect(findings.rows.map(({ ok }) => ok)).toEqual([
      true,
      false,
      true,
      false,
      false,
      null,
      null,
      false,
    ]);
    expect(findings.rows[0]).toEqual({
      scenario: 's',
      contender: 'weir',
      figure: 'a',
      value: 0.99,
      bar: '≥ 0.99',
      ok: true,
    });
  });

  it('are written with the digits that count', () => {
    expect([0.99456, 1, 12_345.678, 320.9167, Infinity].map(inShort)).toEqual([
      '0.9946',
      '1',
      '12,346',
      '320.92',
      'none',
    ]);
  });
});

describe('the table', () => {
  it('has a column for each contender, and the verdict at the end', () => {
    const findings = new Findings('s');
    findings.atLeast('weir', 'utilisation', 0.5, 0.99);
    findings.show('fixed split', 'utilisation', 0.25);
    findings.show('weir', 'calls', 20);
    expect(formatTable(findings.rows).split('\n')).toEqual([
      '               weir  fixed split     bar',
      '  utilisation   0.5         0.25  ≥ 0.99  MISSED',
      '  calls          20',
    ]);
  });

  it('gives a figure that comes twice two lines', () => {
    const findings = new Findings('s');
    findings.atMost('weir', 'worst', 1, 1);
    findings.atMost('weir', 'worst', 2, 1);
    const lines = formatTable(findings.rows).split('\n').slice(1);
    expect(lines.map((line) => line.trim().split(/\s+/).at(-1))).toEqual(['ok', 'MISSED']);
  });
});

describe('ticks', () => {
  it('are round, few, and reach the end', () => {
    expect(linearTicks(0, 10)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(linearTicks(0, 15_432)).toEqual([0, 5000, 10_000, 15_000, 20_000]);
    expect(linearTicks(0, 0.3)).toEqual([0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3]);
    expect(logTicks(0.5, 100)).toEqual([0.5, 1, 2, 5, 10, 20, 50, 100]);
  });
});

describe('a drawing', () => {
  const axes = { xLabel: 'seconds', yLabel: 'tokens' };
  const panel: Panel = {
    ...axes,
    series: [
      {
        name: 'admitted <b> & "c"',
        points: [
          [0, 0],
          [5, 50],
          [10, 100],
        ],
      },
      {
        name: 'ideal',
        style: 'dashed',
        points: [
          [0, 10],
          [10, 10],
        ],
      },
    ],
    marks: [{ x: 5, label: 'store away' }],
  };

  it('is well-formed, whatever the names are', () => {
    const svg = toSvg({ title: 'a < b & c', panels: [panel, panel] });
    expect(openTags(svg)).toEqual([]);
    expect(svg).toContain('a &lt; b &amp; c');
    expect(svg).toContain('admitted &lt;b&gt; &amp; "c"');
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
  });

  it('has a light ground, axes with labels, marks, and a legend of all series', () => {
    const svg = toSvg({ title: 't', panels: [panel] });
    expect(svg).toContain('fill="#ffffff"');
    for (const label of ['seconds', 'tokens', 'store away', 'ideal', '>10<', '>100<']) {
      expect(svg).toContain(label);
    }
    expect(svg.match(/<polyline /g)).toHaveLength(2);
  });

  it('cuts names that would not fit beside it', () => {
    const series = [{ name: 'x'.repeat(64), points: [[1, 1] as const] }];
    const svg = toSvg({ title: 't', panels: [{ ...axes, series }] });
    expect(svg).toContain(`>${'x'.repeat(22)}…<`);
  });

  it('puts points where they belong: time to the right, more above', () => {
    const [first, middle, last] = pointsOf(toSvg({ title: 't', panels: [panel] }));
    expect(middle![0] - first![0]).toBeCloseTo(last![0] - middle![0], 0);
    expect(first![1] - middle![1]).toBeCloseTo(middle![1] - last![1], 0);
    expect(last![0]).toBeGreaterThan(first![0]);
    expect(last![1]).toBeLessThan(first![1]);
  });

  it('has a scale by ratios if asked for one', () => {
    const points = [
      [1, 0],
      [10, 0.5],
      [100, 1],
    ] as const;
    const log: Panel = { ...axes, xScale: 'log', series: [{ name: 'a', points }] };
    const [first, middle, last] = pointsOf(toSvg({ title: 't', panels: [log] }));
    expect(middle![0] - first![0]).toBeCloseTo(last![0] - middle![0], 0);
  });

  it.each([
    ['no series', []],
    ['no points', [{ name: 'a', points: [] }]],
    ['a single point at zero', [{ name: 'a', points: [[1, 0] as const] }]],
  ])('can be made of %s', (_, series) => {
    for (const xScale of ['linear', 'log'] as const) {
      const svg = toSvg({ title: 't', panels: [{ ...axes, xScale, series }] });
      expect(svg).not.toMatch(/NaN|Infinity|undefined/);
    }
  });
});

function pointsOf(svg: string): [number, number][] {
  const places = /<polyline [^>]*points="([^"]*)"/.exec(svg)![1]!;
  return places.split(' ').map((place) => place.split(',').map(Number) as [number, number]);
}

/** The tags that are opened and not closed in turn; attributes must be quoted, text escaped. */
function openTags(svg: string): string[] {
  const open: string[] = [];
  const rest = svg.replace(
    /<(\/?)(\w+)((?: [\w-]+="[^"<&]*")*)(\/?)>/g,
    (_, end, name, __, self) => {
      if (end === '/') {
        if (open.pop() !== name) throw new Error(`${name} is closed and was not open`);
      } else if (self !== '/') {
        open.push(String(name));
      }
      return '';
    },
  );
  if (/[<>]|&(?!amp;|lt;|gt;)/.test(rest)) throw new Error(`not escaped: ${rest.trim()}`);
  return open;
}
