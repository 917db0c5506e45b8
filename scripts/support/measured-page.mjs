// The tables of docs/measured.md and docs/simulated.md, out of what benchmarks and simulator have found.

export const RESULTS = 'bench/results/bench.json';
export const SIMULATION = 'bench/results/simulation.json';

const START = '<!-- Run: npm run figures -->';
const END = '<!-- end -->';
const SHOWN = { ok: 'kept', missed: '**missed**', undecided: 'undecided' };

/** The results with those of the suites that were run now in their place. */
export function withResults(results, { rows, bars, takenOn, node, cpus }) {
  const suites = [...new Set(rows.map(({ suite }) => suite))];
  const own = (suite) => ({
    ...{ takenOn, node, cpus },
    bars: bars.flatMap(({ promise, ...bar }) => {
      const start = `${suite}: `;
      return promise.startsWith(start) ? { promise: promise.slice(start.length), ...bar } : [];
    }),
    rows: rows.filter((row) => row.suite === suite).map((row) => ({ ...row, suite: undefined })),
  });
  return { ...results, ...Object.fromEntries(suites.map((suite) => [suite, own(suite)])) };
}

/** What each promise of the benchmarks came to, by suite. */
export function benchmarkRows(results) {
  return Object.entries(results).flatMap(([suite, { bars }]) =>
    bars.map(({ promise, found, verdict, apart }) => {
      const twins = apart === undefined ? '' : `, twins ${Math.round(apart * 100)} % apart`;
      return [`${suite}: ${promise}`, figure(found), SHOWN[verdict] + twins];
    }),
  );
}

/** What the simulator promises, and what came of it on its own quota; `tokens beyond` says more than the worst of some spans. */
export function simulatedRows(rows) {
  return rows
    .filter(({ bar, figure: name }) => bar !== null && !name.startsWith('worst '))
    .map(({ scenario, figure: name, value, bar, ok }) => [
      scenario,
      name,
      figure(value),
      `${bar}, ${SHOWN[ok ? 'ok' : 'missed']}`,
    ]);
}

export function measuredPage(page, results) {
  const places = new Map();
  for (const [suite, { takenOn, node, cpus }] of Object.entries(results)) {
    const place = `${takenOn}, Node ${node}, ${cpus}`;
    places.set(place, [...(places.get(place) ?? []), suite]);
  }
  return withTables(page, [
    ...[...places].map(([place, suites]) => `- ${suites.join(', ')}: ${place}`),
    '',
    table(['promise', 'found', 'verdict'], benchmarkRows(results)),
  ]);
}

export function simulatedPage(page, rows) {
  const head = ['scenario', 'figure', 'found', 'promised'];
  return withTables(page, [table(head, simulatedRows(rows))]);
}

function withTables(page, lines) {
  const [before, rest] = page.split(START);
  return `${before}${START}\n\n${lines.join('\n')}\n\n${END}${rest.split(END)[1]}`;
}

const cells = (row) => `| ${row.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |`;
const table = (head, rows) => [head, head.map(() => '---'), ...rows].map(cells).join('\n');

function figure(value) {
  if (typeof value !== 'number' || !Number.isFinite(value)) return 'none';
  return value.toLocaleString('en', { maximumSignificantDigits: 3 });
}
