// Pictures of the dashboard for Grafana: its own queries, answered by a real Prometheus that has scraped a shop.
import { coloured, rowPicture } from './panel-picture.mjs';
import { withPrometheus } from './prometheus.mjs';
import { EVENTS, SCRAPE_SECONDS, scrapeShop, SHOWN, START_MS } from './shop-fleet.mjs';

const STEP_SECONDS = 30;
/** As Grafana has it: four scrapes, or a step and a scrape if that is more. */
const RATE_INTERVAL = `${Math.max(4 * SCRAPE_SECONDS, STEP_SECONDS + SCRAPE_SECONDS)}s`;

/** Pictures by the name of their row. A panel without any data is an error. */
export async function panelPictures(library, dashboard) {
  const lines = [];
  await scrapeShop(library, (line) => lines.push(line));
  return await withPrometheus(lines, async (ask) => {
    const pictures = {};
    for (const { title, panels } of rowsOf(dashboard)) {
      const drawn = [];
      for (const panel of panels) drawn.push(await answered(panel, dashboard, ask));
      pictures[title.toLowerCase()] = rowPicture({ title, panels: drawn, ...SPAN, events });
    }
    return pictures;
  });
}

const secondOf = (minute) => START_MS / 1000 + minute * 60;
const SPAN = { from: secondOf(SHOWN.from), to: secondOf(SHOWN.to) };
const events = EVENTS.map(({ from, to, words }, place) => ({
  ...{ letter: 'abcdef'[place], words, from: secondOf(from), to: secondOf(to) },
}));

function rowsOf({ panels }) {
  const rows = [];
  for (const panel of panels) {
    if (panel.type === 'row') rows.push({ title: panel.title, panels: [] });
    else rows.at(-1).panels.push(panel);
  }
  return rows;
}

async function answered({ title, fieldConfig, gridPos, targets }, { templating }, ask) {
  const series = [];
  for (const { expr, legendFormat } of targets) {
    const query = filledIn(expr, templating.list);
    const found = await ask({ expr: query, ...SPAN, step: STEP_SECONDS });
    if (!found.some(({ points }) => points.some(([, value]) => Number.isFinite(value)))) {
      throw new Error(`the panel "${title}" has no data: ${query}`);
    }
    for (const { labels, points } of found) {
      const name = legendFormat.replace(/\{\{(\w+)\}\}/g, (_, label) => labels[label] ?? '');
      series.push({ name, points });
    }
  }
  const { unit } = fieldConfig.defaults;
  return { title, unit, x: gridPos.x, w: gridPos.w, series: coloured(series) };
}

/** With everything chosen, as the dashboard opens. */
export function filledIn(expr, variables) {
  const all = variables.reduce(
    (text, { name, allValue }) => text.replaceAll(`$${name}`, allValue),
    expr,
  );
  return all.replaceAll('$__rate_interval', RATE_INTERVAL);
}
