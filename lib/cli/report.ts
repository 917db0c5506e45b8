import { FleetHistory } from '../observability/fleet/history.js';
import {
  capacityReport,
  dayOf,
  growthOf,
  forecastText,
  MOST_REPORT_DAYS,
  reportCsv,
  type CapacityReport,
  type CapacityRow,
} from '../observability/report.js';
import { figure, percent } from '../observability/figures.js';
import { type SeriesTable } from '../observability/series-table.js';
import { RedisBoard } from '../stores/redis/redis-board.js';
import { readArguments, wholeOption, FLAG, TEXT } from './arguments.js';
import { asJson, DONE, FAILED, UsageError, type Command } from './command.js';
import { documentIn, readStored } from './stored-config.js';
import { STORE_HELP, STORE_OPTIONS, withStore, type OpenStore } from './store-options.js';
import { table } from './table.js';

/** More series than any fleet keeps. */
const MOST_SERIES = 1000;

/** The figures that the processes have put on the board. */
export async function fleetTable(
  { connection, prefix, clock }: OpenStore,
  horizon: 'minutes' | 'hours',
): Promise<SeriesTable> {
  const { client } = connection;
  const board = new RedisBoard({ client, prefix }, clock);
  try {
    return await new FleetHistory(board, clock, MOST_SERIES).tableOf(horizon);
  } finally {
    board.close();
  }
}

export const report: Command = {
  name: 'report',
  takes: '',
  about: 'say how much of the capacity was used, and when it will not be enough',
  options: [
    `--days N          of the last N days, 1 to ${MOST_REPORT_DAYS} (default: ${MOST_REPORT_DAYS})`,
    '--csv             for spreadsheets',
    ...STORE_HELP,
  ],
  run(args, output) {
    const options = {
      ...STORE_OPTIONS,
      days: TEXT,
      csv: FLAG,
    } as const;
    const { values } = readArguments(args, options, [0, 0]);
    const days = wholeOption('--days', values.days, 1, MOST_REPORT_DAYS) ?? MOST_REPORT_DAYS;
    if (values.csv && values.json) throw new UsageError('Either --csv or --json.');
    return withStore(values, async (store) => {
      const made = await reportOn(store, days);
      if (values.json) output.log(asJson(made));
      else if (values.csv) output.log(reportCsv(made).trimEnd());
      else if (made.rows.length > 0) output.log(textOf(made));
      if (made.rows.length > 0 || values.json || values.csv) return DONE;
      output.error('No process has left figures yet: they are there after a minute or so, unless monitor.fleet is off.'); // oxfmt-ignore
      return FAILED;
    });
  },
};

async function reportOn(store: OpenStore, days: number): Promise<CapacityReport> {
  const { clock, config } = store;
  const document = documentIn(await readStored(config));
  const apps = Object.entries(document.apps ?? {}).flatMap(([name, { guaranteed, burst }]) =>
    guaranteed === undefined ? [] : [[name, { guaranteed, burst }] as const],
  );
  const limits = { capacity: document.cluster?.capacity, apps: Object.fromEntries(apps) };
  const hours = await fleetTable(store, 'hours');
  const epochMs = clock.epochMs(clock.now());
  return capacityReport({
    ...{ cluster: document.cluster?.id ?? 'default', series: hours.all(), limits, days },
    ...{ nowMicros: epochMs * 1000, epochMs },
  });
}

function textOf({ cluster, fromMs, toMs, rows }: CapacityReport): string {
  const lines = rows.map((row) => {
    const growth = growthOf(row);
    return [
      ...[titleOf(row), figure(row.peak), figure(row.average)],
      row.ofLimit === undefined ? undefined : percent(row.ofLimit),
      growth === undefined ? undefined : `+${percent(growth)}`,
      ...[forecastText(row), busiest(row)],
    ];
  });
  const head = [
    '',
    'peak/s',
    'average/s',
    'of limit',
    'growth/day',
    'full in',
    'busiest hours, UTC',
  ];
  return `cluster ${cluster}, ${dayOf(fromMs)} to ${dayOf(toMs)}\n${table(head, lines)}`;
}

function titleOf({ kind, name, limit, figure: what }: CapacityRow): string {
  if (kind === 'app') return limit === undefined ? `app ${name}` : `app ${name} (guaranteed ${figure(limit)})`; // oxfmt-ignore
  if (kind === 'policy') return `policy ${name}`;
  return what === 'used' ? 'cluster' : 'all requests';
}

const busiest = ({ busiestMs }: CapacityRow): string =>
  busiestMs.map((ms) => `${dayOf(ms)} ${new Date(ms).toISOString().slice(11, 16)}`).join(', ');
