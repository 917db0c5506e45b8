// Panels of the dashboard as SVG, a row of them in each picture, for light and for dark pages.

const WIDTH = 880;
const GAP = 12;
const PLOT = { left: 52, top: 34, right: 10, height: 140 };
const LEGEND_LINE = 17;
const LETTER = 6.3;
const COLOURS = 8;

const STYLE = `
    .page { fill: #ffffff; stroke: #d0d7de; }
    .panel { fill: #f6f8fa; stroke: #d0d7de; }
    .grid { stroke: #d8dee4; }
    .event { fill: #eaeef2; }
    .soft { fill: #57606a; }
    .text { fill: #1f2328; }
    .c0 { stroke: #0969da; fill: none; }
    .c1 { stroke: #bc4c00; fill: none; }
    .c2 { stroke: #1a7f37; fill: none; }
    .c3 { stroke: #8250df; fill: none; }
    .c4 { stroke: #cf222e; fill: none; }
    .c5 { stroke: #9a6700; fill: none; }
    .c6 { stroke: #1b7c83; fill: none; }
    .c7 { stroke: #bf3989; fill: none; }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117; stroke: #3d444d; }
      .panel { fill: #151b23; stroke: #3d444d; }
      .grid { stroke: #262c36; }
      .event { fill: #212830; }
      .soft { fill: #9198a1; }
      .text { fill: #f0f6fc; }
      .c0 { stroke: #58a6ff; fill: none; }
      .c1 { stroke: #f0883e; fill: none; }
      .c2 { stroke: #3fb950; fill: none; }
      .c3 { stroke: #bc8cff; fill: none; }
      .c4 { stroke: #ff7b72; fill: none; }
      .c5 { stroke: #d29922; fill: none; }
      .c6 { stroke: #39c5cf; fill: none; }
      .c7 { stroke: #f778ba; fill: none; }
    }`;

const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

const escaped = (words) => words.replace(/&/g, '&amp;').replace(/</g, '&lt;');
const text = (x, y, words, more = 'class="soft"') =>
  `<text x="${round(x)}" y="${round(y)}" ${more}>${escaped(words)}</text>`;
const round = (value) => Math.round(value * 10) / 10;

/**
 * One row of the dashboard. Each panel has `title`, `unit`, its place on the grid (`x`, `w` of 24) and `series`, which are a
 * legend and pairs of second and value. `events` are stretches of time with a letter.
 */
export function rowPicture({ title, panels, events, from, to }) {
  const widthOf = (columns) => ((WIDTH - GAP) * columns) / 24 - GAP;
  const shown = panels.map((panel) => ({
    ...panel,
    legend: legendOf(panel.series, widthOf(panel.w) - 20),
  }));
  const lines = Math.max(...shown.map(({ legend }) => legend.at(-1)?.line ?? 0)) + 1;
  const panelHeight = PLOT.top + PLOT.height + 26 + lines * LEGEND_LINE + 8;
  const height = 38 + panelHeight + 34;
  const body = shown.map((panel) =>
    panelSvg(panel, {
      ...{ left: GAP + ((WIDTH - GAP) * panel.x) / 24, top: 38, width: widthOf(panel.w) },
      ...{ height: panelHeight, events, from, to },
    }),
  );
  const told = events.map(({ letter, words }) => `${letter}: ${words}`).join(' · ');
  const names = panels.map((panel) => panel.title).join('; ');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title desc" font-family="${FONT}" font-size="12">
  <title id="title">${escaped(`The row ${title} of the dashboard for Grafana`)}</title>
  <desc id="desc">${escaped(`Panels: ${names}. ${told}.`)}</desc>
  <style>${STYLE}
  </style>
  <rect class="page" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>
  ${text(GAP, 25, title, 'class="text" font-size="14" font-weight="600"')}
${body
  .flat()
  .map((line) => `  ${line}`)
  .join('\n')}
  ${text(GAP, height - 13, told, 'class="soft" font-size="11.5"')}
</svg>
`;
}

function panelSvg({ title, unit, series, legend }, { left, top, width, height, events, from, to }) {
  const [x0, x1] = [left + PLOT.left, left + width - PLOT.right];
  const [y0, y1] = [top + PLOT.top, top + PLOT.top + PLOT.height];
  const ticks = ticksOf(highestOf(series), unit);
  const x = (second) => round(x0 + ((second - from) / (to - from)) * (x1 - x0));
  const y = (value) => round(y1 - (value / ticks.at(-1)) * (y1 - y0));
  const format = formatOf(unit, ticks.at(-1));
  const minutes = (to - from) / 60;
  const every = x1 - x0 > 350 ? 15 : 30;
  const marks = Array.from({ length: Math.floor(minutes / every) + 1 }, (_, i) => i * every);
  return [
    `<rect class="panel" x="${round(left)}" y="${top}" width="${round(width)}" height="${height}" rx="4"/>`,
    text(left + 10, top + 20, title, 'class="text" font-weight="600"'),
    ...events.flatMap((event) => [
      `<rect class="event" x="${x(event.from)}" y="${y0}" width="${round(x(event.to) - x(event.from))}" height="${PLOT.height}"/>`,
      text(
        (x(event.from) + x(event.to)) / 2,
        y0 - 3,
        event.letter,
        'class="soft" font-size="10" text-anchor="middle"',
      ),
    ]),
    ...ticks.flatMap((tick) => [
      `<path class="grid" d="M${round(x0)} ${y(tick)}H${round(x1)}"/>`,
      text(x0 - 6, y(tick) + 4, format(tick), 'class="soft" font-size="11" text-anchor="end"'),
    ]),
    ...marks.map((minute) =>
      text(
        x(from + minute * 60),
        y1 + 16,
        `${Math.floor(minute / 60)}:${String(minute % 60).padStart(2, '0')}`,
        'class="soft" font-size="11" text-anchor="middle"',
      ),
    ),
    ...series.map(
      ({ points, look }) =>
        `<path ${look} stroke-width="1.4" stroke-linejoin="round" d="${pathOf(points, x, y)}"/>`,
    ),
    ...legend.flatMap(({ name, look, at, line }) => {
      const [lx, ly] = [left + 10 + at, y1 + 36 + line * LEGEND_LINE];
      return [
        `<path ${look} stroke-width="3" d="M${round(lx)} ${round(ly - 4)}h12"/>`,
        text(lx + 17, ly, name),
      ];
    }),
  ];
}

/** A value that is no number, or is missing, is a gap. */
function pathOf(points, x, y) {
  let pen = 'M';
  let path = '';
  let before;
  for (const [second, value] of points) {
    if (!Number.isFinite(value) || (before !== undefined && second - before > LONGEST_GAP))
      pen = 'M';
    before = second;
    if (!Number.isFinite(value)) continue;
    path += `${pen}${x(second)} ${y(value)}`;
    pen = 'L';
  }
  return path;
}

const LONGEST_GAP = 61;

/** Colours in the order of the series; when they are used up, once more with dashes. */
export function coloured(series) {
  return series.map((one, index) => {
    const colour = `c${index % COLOURS}`;
    return { ...one, look: index < COLOURS ? `class="${colour}"` : `class="${colour}" ${DASHES}` };
  });
}

const DASHES = 'stroke-dasharray="4 2"';

/** A name that has nothing but zeros needs no place. */
function legendOf(series, width) {
  const isThere = ({ points }) => points.some(([, value]) => value > 0);
  const all = series.some(isThere) ? series.filter(isThere) : series;
  let [at, line] = [0, 0];
  return all.map(({ name, look }) => {
    const wide = 17 + name.length * LETTER + 14;
    if (at > 0 && at + wide > width) [at, line] = [0, line + 1];
    const place = { name, look, at, line };
    at += wide;
    return place;
  });
}

const highestOf = (series) =>
  Math.max(
    0,
    ...series.flatMap(({ points }) => points.map(([, value]) => value)).filter(Number.isFinite),
  );

/** From 0 to above the highest, four or five of them, in round steps. */
function ticksOf(highest, unit) {
  const raw = (highest || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const least = unit === 'short' ? 1 : 0;
  const step = Math.max(
    least,
    [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= raw),
  );
  const count = Math.max(1, Math.ceil(highest / step - 1e-9));
  return Array.from({ length: count + 1 }, (_, i) => i * step);
}

const brief = (value) =>
  value >= 1000 ? `${Number((value / 1000).toFixed(2))}k` : String(Number(value.toFixed(2)));

/** Units as Grafana names them. */
function formatOf(unit, highest) {
  if (unit === 'percentunit') return (value) => `${Number((value * 100).toFixed(1))} %`;
  if (unit === 's' && highest <= 0.002) return (value) => `${Number((value * 1e6).toFixed(0))} µs`;
  if (unit === 's' && highest < 1) return (value) => `${Number((value * 1000).toFixed(1))} ms`;
  if (unit === 's') return (value) => `${brief(value)} s`;
  return unit === 'reqps' || unit === 'ops' ? (value) => `${brief(value)}/s` : brief;
}
