// Pictures that the library draws of itself, as SVG for light and for dark pages.
import { readFileSync } from 'node:fs';

const STYLE = `
    .page { fill: #ffffff; stroke: #d0d7de; }
    .grid { stroke: #d8dee4; }
    .axis { stroke: #57606a; fill: none; }
    .asked { stroke: #8c959f; fill: none; }
    .one { stroke: #0969da; fill: none; }
    .two { stroke: #bc4c00; fill: none; }
    .three { stroke: #1a7f37; fill: none; }
    .box { fill: #ddf4ff; stroke: #0969da; }
    .calm { fill: #dafbe1; stroke: #1a7f37; }
    .alarm { fill: #ffebe9; stroke: #cf222e; }
    .soft { fill: #57606a; }
    .text { fill: #1f2328; }
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117; stroke: #3d444d; }
      .grid { stroke: #262c36; }
      .axis { stroke: #9198a1; fill: none; }
      .asked { stroke: #656c76; fill: none; }
      .one { stroke: #58a6ff; fill: none; }
      .two { stroke: #f0883e; fill: none; }
      .three { stroke: #3fb950; fill: none; }
      .box { fill: #10233d; stroke: #58a6ff; }
      .calm { fill: #12261e; stroke: #3fb950; }
      .alarm { fill: #2d1215; stroke: #f85149; }
      .soft { fill: #9198a1; }
      .text { fill: #f0f6fc; }
    }`;

const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

function svg(width, height, title, description, body) {
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title desc" font-family="${FONT}" font-size="13">
  <title id="title">${title}</title>
  <desc id="desc">${description}</desc>
  <style>${STYLE}
  </style>
  <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" class="soft"/></marker></defs>
  <rect class="page" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8"/>
${body.map((line) => `  ${line}`).join('\n')}
</svg>
`;
}

const text = (x, y, words, more = 'class="soft"') =>
  `<text x="${x}" y="${y}" ${more}>${words}</text>`;
const round = (value) => Math.round(value * 10) / 10;

/** Callers ask at an even pace from 0 to 2 s and from 4 to 6 s. */
const ASKED_EVERY_MS = 50;
const instants = [0, 4000].flatMap((from) =>
  Array.from({ length: 2000 / ASKED_EVERY_MS }, (_, i) => from + i * ASKED_EVERY_MS),
);

/** When the requests go that a bucket lets go: at once, or when their turn has come. */
function departures(bucket) {
  return instants
    .flatMap((now) => {
      const { allowed, waitMs } = bucket.take(now);
      return allowed ? [now + waitMs] : [];
    })
    .sort((one, other) => one - other);
}

/** How many have gone, over time, for each way to count. */
export function algorithmsPicture({ TokenBucket, SlidingWindow, LeakyBucket }) {
  const curves = [
    ['asked', 'asked for: 20 a second', instants],
    ['one', 'token bucket', departures(new TokenBucket({ capacity: 10, rate: 10 }))],
    ['two', 'sliding window', departures(new SlidingWindow({ capacity: 10, period: '1s' }))],
    ['three', 'shaper', departures(new LeakyBucket({ capacity: 10, rate: 10, mode: 'shaper' }))],
  ];
  const [left, top, width, height] = [52, 34, 620, 250];
  const x = (ms) => round(left + (ms / 7000) * width);
  const y = (count) => round(top + height - (count / 80) * height);
  const path = (times) =>
    `M${x(0)} ${y(0)}` + times.map((ms, i) => `H${x(ms)}V${y(i + 1)}`).join('') + `H${x(7000)}`;
  const body = [
    text(left, 22, 'requests that have gone', 'class="text" font-weight="600"'),
    ...[0, 20, 40, 60, 80].flatMap((count) => [
      `<path class="grid" d="M${left} ${y(count)}H${left + width}"/>`,
      text(left - 8, y(count) + 4, count, 'class="soft" text-anchor="end"'),
    ]),
    ...[0, 1, 2, 3, 4, 5, 6, 7].map((second) =>
      text(x(second * 1000), top + height + 20, `${second} s`, 'class="soft" text-anchor="middle"'),
    ),
    `<path class="axis" d="M${left} ${top}V${top + height}H${left + width}"/>`,
    ...curves.map(
      ([name, , times]) => `<path class="${name}" stroke-width="1.8" d="${path(times)}"/>`,
    ),
    ...curves.flatMap(([name, words, times], i) => [
      `<path class="${name}" stroke-width="3" d="M690 ${50 + i * 44}h24"/>`,
      text(722, 54 + i * 44, words, 'class="text"'),
      text(722, 70 + i * 44, `${times.length} in all`),
    ]),
    text(left, top + height + 44, 'A limit of ten a second; nobody asks from 2 s to 4 s.'),
  ];
  const told = curves.map(([, words, times]) => `${words}, ${times.length} in all`).join('; ');
  return svg(
    ...[880, 340, 'What each algorithm lets through'],
    `Requests that have gone over seven seconds: ${told}. The bucket lets all go until its spare tokens are used, then ten a second; the window ten, and ten more a second later; the shaper one every 100 ms.`,
    body,
  );
}

const STATES = [
  ['normal', 70, 'calm', 'all requests run'],
  ['degraded', 270, 'alarm', 'fallbacks for all'],
  ['probing', 470, 'box', 'one request tries'],
  ['ramp', 670, 'box', '10, 30, 50, 100 %'],
];

/** The states of a resource, and below them the part of its traffic as the machine itself gives it back. */
export function recoveryPicture({ initialState, isProbeDue, lets, percentOf, reduce }, rules) {
  const line = percentages({ initialState, isProbeDue, lets, percentOf, reduce }, rules);
  const end = line.at(-1)[0];
  const [left, top, width, height] = [70, 236, 760, 120];
  const x = (seconds) => round(left + (seconds / end) * width);
  const y = (percent) => round(top + height - (percent / 100) * height);
  const curve = line
    .map(([at, percent], i) => `${i === 0 ? 'M' : 'L'}${x(at)} ${y(percent)}`)
    .join('');
  const arrow = (from, to, bend, words) => {
    const [start, stop] = [from + 65, to + 65];
    const d = bend === 0 ? `M${from + 130} 75H${to - 4}` : `M${start} 104V${bend}H${stop}V108`;
    const middle = bend === 0 ? (from + 130 + to) / 2 : (start + stop) / 2;
    return [
      `<path class="axis" d="${d}" marker-end="url(#tip)"/>`,
      text(
        middle,
        bend === 0 ? 40 : bend - 6,
        words,
        'class="soft" text-anchor="middle" font-size="12"',
      ),
    ];
  };
  const body = [
    ...STATES.flatMap(([name, at, kind, words]) => [
      `<rect class="${kind}" x="${at}" y="48" width="130" height="56" rx="6"/>`,
      text(at + 65, 72, name, 'class="text" text-anchor="middle" font-weight="600"'),
      text(at + 65, 92, words, 'class="soft" text-anchor="middle" font-size="12"'),
    ]),
    ...arrow(70, 270, 0, 'half of 20 calls fail'),
    ...arrow(270, 470, 0, 'after 10 s'),
    ...arrow(470, 670, 0, 'three in a row succeed'),
    ...arrow(470, 270, 138, 'one fails'),
    ...arrow(670, 290, 162, 'a failure beyond the tolerance'),
    ...arrow(670, 70, 190, 'a stage of 100 % went well'),
    text(left, top - 14, 'part of the traffic that reaches it', 'class="text" font-weight="600"'),
    ...[0, 50, 100].flatMap((percent) => [
      `<path class="grid" d="M${left} ${y(percent)}H${left + width}"/>`,
      text(left - 8, y(percent) + 4, `${percent} %`, 'class="soft" text-anchor="end"'),
    ]),
    `<path class="axis" d="M${left} ${top}V${top + height}H${left + width}"/>`,
    `<path class="one" stroke-width="2" d="${curve}"/>`,
    ...[0, 20, 40, 60, 80].map((second) =>
      text(x(second), top + height + 20, `${second} s`, 'class="soft" text-anchor="middle"'),
    ),
  ];
  return svg(
    ...[880, 392, 'The way back of a resource'],
    `Normal, degraded, probing, ramp, normal. Below, the part of the traffic over ${end} seconds: none from 10 s on, then 10, 30, 50 and 100 %.`,
    body,
  );
}

/** A resource that falls at 10 s and is well again at once: ten requests a second ask for it. */
function percentages({ initialState, isProbeDue, lets, percentOf, reduce }, rules) {
  let state = initialState(0);
  const line = [[0, 100]];
  for (let tenth = 1; tenth <= 1000; tenth++) {
    const now = tenth * 100_000;
    const before = percentOf(state, rules);
    if (tenth === 100) state = reduce(state, { type: 'trip', cause: 'errors' }, now, rules);
    state = reduce(state, { type: 'time' }, now, rules);
    const isProbe = isProbeDue(state, now);
    if (isProbe) state = reduce(state, { type: 'probe' }, now, rules);
    const passes = isProbe || (state.phase === 'ramp' && lets(state, rules));
    state = reduce(state, { type: 'request' }, now, rules);
    if (passes) {
      const admission = {
        kind: isProbe ? 'probe' : 'ramped',
        epoch: state.epoch,
        permit: state.permit,
      };
      state = reduce(state, { type: 'settled', admission, outcome: 'success' }, now, rules);
    }
    const after = percentOf(state, rules);
    if (after !== before) line.push([tenth / 10, before], [tenth / 10, after]);
  }
  return [...line, [100, percentOf(state, rules)]];
}

/** A drawing of this folder, with figures in the places that it names. */
function drawn(name, figures) {
  const drawing = readFileSync(new URL(`./drawings/${name}.svg`, import.meta.url), 'utf8');
  return drawing.replace(/\{\{(\w+)\}\}/g, (_, figure) => {
    if (!(figure in figures)) throw new Error(`${name}.svg: there is no figure ${figure}`);
    return figures[figure];
  });
}

const UNITS = { ms: 'ms', s: 's', m: 'min', h: 'h', d: 'd' };
/** '20ms' as people read it. */
const span = (duration) => duration.replace(/^(\d+)(\w+)$/, (_, n, unit) => `${n} ${UNITS[unit]}`);
const grouped = (value) => value.toLocaleString('en-US');

/** Each of these takes the defaults of the library's options. */
export function requestPicture({ store, degradation }) {
  return drawn('request', {
    decisionTimeout: span(store.decisionTimeout),
    level1Ttl: span(degradation.level1Ttl),
    level2Ttl: span(degradation.level2Ttl),
  });
}

export function overloadPicture({ overload: { tiers, slice, target, interval } }) {
  return drawn('overload', {
    ...Object.fromEntries(tiers.map((tier, index) => [`tier${index}`, tier])),
    tiers: `${tiers.slice(0, -1).join(', ')} and ${tiers.at(-1)}`,
    ...{ slice: span(slice), target: span(target), interval: span(interval) },
  });
}

const SHARED = { capacity: 10_000, one: 4000, oneBurst: 8000, two: 500, twoBurst: 5000 };

export function hierarchyPicture({ cluster, local, weights }) {
  const { capacity, one, two } = SHARED;
  const kept = capacity * cluster.reservedRatio;
  const parts = { one, two, lent: capacity - one - two - kept, kept };
  const places = {};
  const [left, width] = [180, 664];
  let from = 0;
  for (const [name, tokens] of Object.entries(parts)) {
    const x = (value) => Math.round(left + (value / capacity) * width);
    places[`${name}X`] = x(from);
    places[`${name}Width`] = x(from + tokens) - x(from);
    places[`${name}Middle`] = x(from + tokens / 2);
    from += tokens;
  }
  const figures = Object.entries(SHARED).map(([name, tokens]) => [name, grouped(tokens)]);
  return drawn('hierarchy', {
    ...{ ...Object.fromEntries(figures), ...places },
    ...{ weights: weights.join(' : '), pace: span(local.pace) },
  });
}
