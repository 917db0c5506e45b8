import { type Chart, type Panel, type Point, type ChartSeries } from './chart.js';

const WIDTH = 960;
const PANEL_HEIGHT = 260;
const MARGIN = { top: 56, right: 190, bottom: 52, left: 84 };
const GAP = 64;
/** Told apart by people who see no red and green, too (Okabe and Ito). */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#56b4e9', '#e69f00', '#000000'];
/** The most letters that fit into the margin. */
const LONGEST_NAME = 22;
const FAINT = '#9a9a9a';
/** The number of ticks of an axis, about. */
const ABOUT = 6;

/** A chart as an SVG file, readable without any style sheet or script. */
export function toSvg({ title, panels }: Chart): string {
  const height = MARGIN.top + panels.length * (PANEL_HEIGHT + GAP) - GAP + MARGIN.bottom;
  const drawn = panels.map((panel, i) => {
    return drawPanel(panel, MARGIN.top + i * (PANEL_HEIGHT + GAP));
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" ` +
      `viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="100%" height="100%" fill="#ffffff"/>`,
    text(MARGIN.left, 28, title, 'font-size="15" font-weight="bold"'),
    ...drawn.flat(),
    '</svg>',
    '',
  ].join('\n');
}

/** From figures to places on the sheet. */
interface Frame {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  readonly xTicks: readonly number[];
  readonly yTicks: readonly number[];
  x(value: number): number;
  y(value: number): number;
}

function drawPanel(panel: Panel, top: number): string[] {
  const frame = frameOf(panel, top);
  return [
    ...drawAxes(panel, frame),
    ...(panel.marks ?? []).flatMap(({ x, label }) => drawMark(frame, x, label)),
    ...panel.series.flatMap((series, i) => drawSeries(frame, series, i)),
  ];
}

function frameOf({ series, xScale }: Panel, top: number): Frame {
  const points = series.flatMap((one) => one.points);
  const xs = points.map(([x]) => x);
  const isLog = xScale === 'log';
  const [leastX, mostX] = isLog ? spanOf(xs, 1, 10) : [0, spanOf(xs, 0, 1)[1]];
  const mostY = spanOf(
    points.map(([, y]) => y),
    0,
    1,
  )[1];
  const yTicks = linearTicks(0, mostY);
  const [left, right, bottom] = [MARGIN.left, WIDTH - MARGIN.right, top + PANEL_HEIGHT];
  const part = isLog
    ? (x: number) => Math.log(x / leastX) / Math.log(mostX / leastX)
    : (x: number) => (x - leastX) / (mostX - leastX);
  return {
    left,
    right,
    top,
    bottom,
    xTicks: isLog ? logTicks(leastX, mostX) : linearTicks(leastX, mostX).filter((x) => x <= mostX),
    yTicks,
    x: (value) => left + part(value) * (right - left),
    y: (value) => bottom - (value / yTicks.at(-1)!) * (bottom - top),
  };
}

/** The least and the most; something sensible if they are the same or there is nothing. */
function spanOf(values: readonly number[], least: number, most: number): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  if (high === -Infinity) return [least, most];
  return high > 0 && (high > low || least === 0) ? [low, high] : [least, most];
}

function drawAxes({ xLabel, yLabel }: Panel, frame: Frame): string[] {
  const { left, right, top, bottom } = frame;
  const grid = frame.yTicks.flatMap((tick) => [
    line(left, frame.y(tick), right, frame.y(tick), 'stroke="#e5e5e5"'),
    text(left - 8, frame.y(tick) + 4, tickText(tick), 'text-anchor="end"'),
  ]);
  const ticks = frame.xTicks.flatMap((tick) => [
    line(frame.x(tick), bottom, frame.x(tick), bottom + 5, 'stroke="#333333"'),
    text(frame.x(tick), bottom + 18, tickText(tick), 'text-anchor="middle"'),
  ]);
  const middle = (top + bottom) / 2;
  return [
    ...grid,
    ...ticks,
    line(left, bottom, right, bottom, 'stroke="#333333"'),
    line(left, top, left, bottom, 'stroke="#333333"'),
    text((left + right) / 2, bottom + 36, xLabel, 'text-anchor="middle"'),
    text(18, middle, yLabel, `text-anchor="middle" transform="rotate(-90 18 ${middle})"`),
  ];
}

function drawMark(frame: Frame, at: number, label: string): string[] {
  const x = frame.x(at);
  return [
    line(x, frame.top, x, frame.bottom, 'stroke="#777777" stroke-dasharray="2 3"'),
    text(x + 4, frame.top - 4, label, 'fill="#555555" font-size="11"'),
  ];
}

function drawSeries(
  frame: Frame,
  { name, points, style = 'line' }: ChartSeries,
  i: number,
): string[] {
  const colour = style === 'faint' ? FAINT : COLOURS[i % COLOURS.length]!;
  const dash = style === 'dashed' ? ' stroke-dasharray="6 4"' : '';
  const stroke = `stroke="${colour}"${dash} stroke-width="${style === 'line' ? 2 : 1.3}"`;
  const [x, y] = [frame.right + 16, frame.top + 10 + i * 20];
  return [
    `<polyline fill="none" stroke-linejoin="round" ${stroke} points="${places(frame, points)}"/>`,
    line(x, y, x + 24, y, stroke),
    text(x + 30, y + 4, name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}…` : name),
  ];
}

function places(frame: Frame, points: readonly Point[]): string {
  return points.map(([x, y]) => `${round(frame.x(x))},${round(frame.y(y))}`).join(' ');
}

function line(x1: number, y1: number, x2: number, y2: number, style: string): string {
  const [a, b, c, d] = [x1, y1, x2, y2].map(round);
  return `<line x1="${a}" y1="${b}" x2="${c}" y2="${d}" ${style}/>`;
}

function text(x: number, y: number, content: string, style = ''): string {
  const attributes = style === '' ? '' : ` ${style}`;
  return `<text x="${round(x)}" y="${round(y)}"${attributes}>${escape(content)}</text>`;
}

function escape(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** Round figures from `least` to the first one that is not below `most`. */
export function linearTicks(least: number, most: number): number[] {
  const step = roundStep((most - least) / ABOUT);
  const first = Math.floor(least / step);
  const count = Math.ceil(most / step - 1e-9) - first;
  // Multiplied anew each time: adding up would show 0.30000000000000004.
  return Array.from({ length: count + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** 1, 2 and 5 of every power of ten in between. */
export function logTicks(least: number, most: number): number[] {
  const ticks: number[] = [];
  const last = Math.ceil(Math.log10(most));
  for (let power = Math.floor(Math.log10(least)); power <= last; power++) {
    for (const digit of [1, 2, 5]) {
      const tick = Number((digit * 10 ** power).toPrecision(12));
      if (tick >= least && tick <= most) ticks.push(tick);
    }
  }
  return ticks;
}

function tickText(value: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: 6 });
}

function roundStep(rough: number): number {
  if (!(rough > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const digit = [1, 2, 5, 10].find((one) => one * power >= rough * (1 - 1e-9))!;
  return digit * power;
}
