import { useSignal } from '@preact/signals';
import { type ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { type PageFrame } from '../frame.js';
import {
  ago,
  byName,
  count,
  limitOf,
  ms,
  notSeen,
  percent,
  plural,
  shown,
  text,
} from './format.js';
import { errorPart, nodeState, wrongness } from './judge.js';
import { type ApiError, ask, filter, opened } from './live.js';
import { Card, Empty, Pairs, Share } from './card.js';
import { RateCharts, seriesOf } from './rates.js';
import {
  LEVEL_NAMES,
  LevelMark,
  rank,
  Ramp,
  resourceRows,
  resourceText,
  type ResourceRow,
} from './resources.js';

interface Column<Row> {
  readonly title: string;
  readonly isNumber?: boolean;
  /** The value that rows are sorted by. */
  readonly by: (row: Row) => number | string;
  readonly show: (row: Row) => ComponentChildren;
}

const name = <Row,>(title: string, of: (row: Row) => string): Column<Row> => ({
  ...{ title, by: of },
  show: (row) => shown(of(row)),
});

const figure = <Row,>(
  title: string,
  of: (row: Row) => number | undefined,
  show: (value: number) => string = count,
): Column<Row> => ({
  ...{ title, isNumber: true, by: (row) => of(row) ?? 0 },
  show: (row) => {
    const value = of(row);
    return value === undefined ? '–' : show(value);
  },
});

interface Rated {
  readonly rate: number;
  readonly denied: number;
}

const deniedPart = ({ rate, denied }: Rated): number => (rate > 0 ? denied / rate : 0);

/** The rate of requests, of denials, and the part that these are. */
const rates = (asked: string): Column<Rated>[] => [
  figure(asked, ({ rate }) => rate),
  figure('Denied/s', ({ denied }) => denied),
  { title: 'Denied part', by: deniedPart, show: (row) => <Share part={deniedPart(row)} /> },
];

/** More rows than these are made as they are scrolled to. */
const WINDOW = 200;
const ROW_HEIGHT = 33;

interface TableProps<Row> {
  /** What a row is. */
  readonly one: 'policy' | 'node' | 'resource';
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  readonly onOpen?: (row: Row) => void;
  /** What is known of it is of before. */
  readonly isOld?: (row: Row) => boolean;
  /** Those that are not among the rows, as these are the busiest. */
  readonly more?: number;
  /** What to do where there are none at all. */
  readonly hint?: ComponentChildren;
}

/** Sortable, and filtered by what is typed. */
function SortedTable<Row>(props: TableProps<Row>) {
  const { one: kind, rows, columns, keyOf, onOpen, isOld, more = 0, hint } = props;
  const sortBy = useSignal(0);
  const isUp = useSignal(true);
  const scrolled = useSignal(0);
  const column = columns[sortBy.value]!;
  const wanted = filter.value.toLowerCase();
  const found = rows
    .filter((row) => keyOf(row).toLowerCase().includes(wanted))
    .sort((one, other) => {
      const [a, b] = [column.by(one), column.by(other)];
      const order =
        typeof a === 'number' && typeof b === 'number' ? a - b : byName(String(a), String(b));
      return isUp.value ? order : -order;
    });
  const isLong = found.length > WINDOW;
  const first = isLong ? Math.max(0, Math.floor(scrolled.value / ROW_HEIGHT) - 20) : 0;
  const part = isLong ? found.slice(first, first + 80) : found;
  const sort = (index: number): void => {
    if (sortBy.value === index) isUp.value = !isUp.value;
    else {
      sortBy.value = index;
      isUp.value = columns[index]!.isNumber !== true;
    }
  };
  return (
    <>
      <div class="filter">
        <label for="filter">Filter</label>
        <input
          id="filter"
          type="search"
          value={filter.value}
          onInput={(event) => (filter.value = event.currentTarget.value)}
          autocomplete="off"
          spellcheck={false}
        />
        <span role="status">
          {found.length} of {rows.length}
          {more > 0 && `, and ${count(more)} more that decide less`}
        </span>
      </div>
      {found.length === 0 ? (
        more > 0 ? (
          <Empty title={`None of these ${rows.length} has that name.`}>
            The {count(more)} that decide less are not shown here.
          </Empty>
        ) : (
          <Empty title={rows.length > 0 ? `No ${kind} of that name.` : `There is no ${kind} yet.`}>
            {rows.length > 0 ? 'Clear the filter to see all.' : hint}
          </Empty>
        )
      ) : (
        <div
          class={isLong ? 'scroll long' : 'scroll'}
          tabIndex={0}
          role="group"
          aria-label="Table"
          onScroll={(event) => (scrolled.value = event.currentTarget.scrollTop)}
        >
          <table class="rows" aria-labelledby="h-wide">
            <thead>
              <tr>
                {columns.map((one, index) => (
                  <th
                    key={one.title}
                    scope="col"
                    class={one.isNumber === true ? 'n' : ''}
                    aria-sort={
                      sortBy.value === index ? (isUp.value ? 'ascending' : 'descending') : 'none'
                    }
                  >
                    <button class="sort" onClick={() => sort(index)}>
                      {one.title}
                      <span aria-hidden="true">
                        {sortBy.value === index ? (isUp.value ? ' ↑' : ' ↓') : ''}
                      </span>
                    </button>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {first > 0 && <tr aria-hidden="true" style={{ height: `${first * ROW_HEIGHT}px` }} />}
              {part.map((row) => (
                <tr key={keyOf(row)} class={isOld?.(row) ? 'dim' : ''}>
                  {columns.map((one, index) => (
                    <td key={one.title} class={one.isNumber === true ? 'n' : ''}>
                      {index === 0 && onOpen !== undefined ? (
                        <button class="plain" onClick={() => onOpen(row)}>
                          {one.show(row)}
                        </button>
                      ) : (
                        one.show(row)
                      )}
                    </td>
                  ))}
                </tr>
              ))}
              {isLong && (
                <tr
                  aria-hidden="true"
                  style={{
                    height: `${Math.max(0, found.length - first - part.length) * ROW_HEIGHT}px`,
                  }}
                />
              )}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

export function PoliciesView({ frame }: { readonly frame: PageFrame }) {
  const rows = frame.policies.map((policy) => {
    const { rate = 0, denied = 0 } = seriesOf(frame, `policy:${policy.name}`) ?? {};
    return { ...policy, rate, denied };
  });
  const other = seriesOf(frame, 'policy:(other)');
  if (other !== undefined) {
    const { rate, denied } = other;
    const without = { capacity: 0, windowMs: 0, shadow: false, isGlobal: false, isNodes: false };
    rows.push({ name: '(other)', ...without, rate, denied });
  }
  const columns: readonly Column<(typeof rows)[number]>[] = [
    name('Policy', (row) => row.name),
    {
      title: 'Limit',
      by: ({ capacity, windowMs }) => (windowMs > 0 ? capacity / windowMs : 0),
      show: (row) => (row.windowMs === 0 ? 'all without a series of their own' : limitOf(row)),
    },
    ...rates('Asked/s'),
    {
      title: 'State',
      by: ({ shadow }) => (shadow ? 1 : 0),
      show: ({ shadow }) => (shadow ? 'watches only' : 'in force'),
    },
  ];
  return (
    <>
      <Card id="wide" title="Policies" note="limits by key: what is asked, and what is denied">
        <SortedTable
          one="policy"
          rows={rows}
          keyOf={(row) => row.name}
          more={frame.policyCount - frame.policies.length}
          onOpen={(row) => (opened.value = `policy:${row.name}`)}
          columns={columns}
        />
      </Card>
      <Sheet frame={frame} />
    </>
  );
}

export function FleetView({ frame }: { readonly frame: PageFrame }) {
  const { unseen, nodes, state } = frame;
  const revision = state.config?.revision ?? 0;
  const lost = unseen?.nodes ?? [];
  const seen = frame.scope === 'fleet' ? state.nodeCount : nodes.length;
  const columns: readonly Column<PageFrame['nodes'][number]>[] = [
    name('Node', ({ node }) => node),
    ...rates('Requests/s'),
    {
      title: 'Revision',
      isNumber: true,
      by: ({ revision: own }) => own,
      show: ({ revision: own }) =>
        own < revision ? <b class="is-degraded">{own}, behind</b> : own,
    },
    {
      title: 'State',
      by: (node) => (lost.includes(node) ? -0.5 : -wrongness(node, revision)),
      show: (node) => {
        const [tone, word] = nodeState(node, revision);
        if (lost.includes(node)) {
          return `${notSeen(unseen!)}${state.store?.isUp ? '' : '; without Redis it decides by itself, with its share'}`;
        }
        if (tone === '') return 'well';
        const which = node.open && `: ${node.open.map(shown).join(', ')}`;
        return (
          <b class={tone === 'off' ? 'is-deny' : 'is-degraded'}>
            {word}
            {which && !node.storeIsUp && ', breaker open'}
            {which}
          </b>
        );
      },
    },
  ];
  return (
    <Card
      id="wide"
      title="Fleet"
      note={
        frame.scope === 'fleet'
          ? `${plural(seen, 'node')}; figures of all${frame.leftOut && `, ${frame.leftOut}`}, merged by one of them`
          : `this process alone${unseen === null ? '' : `; ${unseen.count} more are as they were seen last`}`
      }
    >
      {unseen !== null && <p class="answer">{text(unseen.said)}</p>}
      <SortedTable
        one="node"
        rows={[...nodes, ...lost]}
        keyOf={({ node }) => node}
        isOld={(node) => lost.includes(node)}
        more={unseen === null ? seen - nodes.length : unseen.count - lost.length}
        columns={columns}
      />
    </Card>
  );
}

export function ResourcesView({ frame }: { readonly frame: PageFrame }) {
  const rows = resourceRows(frame);
  const columns: readonly Column<ResourceRow>[] = [
    name('Resource', ({ resource }) => resource),
    {
      title: 'Level',
      by: ({ level }) => -level,
      show: (row) => <LevelMark level={row.level} isOdd={rank(row) > 0} />,
    },
    {
      title: 'State',
      by: ({ phase }) => phase ?? '',
      show: (row) => (
        <>
          {resourceText(row, frame.state.nodeCount)}
          <Ramp row={row} />
        </>
      ),
    },
    {
      title: 'Breaker',
      by: ({ breaker }) => breaker ?? '',
      show: ({ breaker }) => breaker ?? '–',
    },
    figure('Calls/s', ({ series }) => series?.rate ?? 0),
    figure('p99', ({ series }) => series?.p99Ms, ms),
    figure('Errors', ({ series }) => series && errorPart(series), percent),
  ];
  return (
    <>
      <Card
        id="wide"
        title="Resources"
        note="what is protected and what degrades; figures of all nodes"
      >
        <SortedTable
          one="resource"
          rows={rows}
          keyOf={({ resource }) => resource}
          onOpen={({ resource }) => (opened.value = `resource:${resource}`)}
          hint={
            <>
              <code>@Protect('database')</code> and <code>@Degrade</code> make resources.
            </>
          }
          columns={columns}
        />
      </Card>
      <Sheet frame={frame} />
    </>
  );
}

/** The details of one policy or resource, at three horizons. */
function Sheet({ frame }: { readonly frame: PageFrame }) {
  const name = opened.value;
  const box = useRef<HTMLDivElement>(null);
  const before = useRef<Element | null>(null);
  useEffect(() => {
    if (name === null) {
      if (before.current instanceof HTMLElement) before.current.focus();
      before.current = null;
    } else {
      before.current ??= document.activeElement;
      box.current?.focus();
    }
  }, [name]);
  if (name === null) return null;
  const [kind = '', ...rest] = name.split(':');
  const of = rest.join(':');
  const close = (): void => void (opened.value = null);
  const series = seriesOf(frame, name);
  return (
    <div
      class="sheet"
      ref={box}
      tabIndex={-1}
      role="dialog"
      aria-label={`Details of ${shown(of)}`}
      onKeyDown={(event) => event.key === 'Escape' && close()}
    >
      <header>
        <div>
          <span class="dim">{kind}</span>
          <h2>{shown(of)}</h2>
        </div>
        <button class="ghost" onClick={close}>
          Close
        </button>
      </header>
      <Pairs
        of={[
          ['asked', `${count(series?.rate ?? 0)}/s`],
          ['denied', `${count(series?.denied ?? 0)}/s`],
          ['p50', ms(series?.p50Ms)],
          ['p99', ms(series?.p99Ms)],
        ]}
      />
      <RateCharts key={name} frame={frame} name={name} />
      {kind === 'resource' && <ResourceActions frame={frame} resource={of} />}
    </div>
  );
}

function ResourceActions({ frame, resource }: { frame: PageFrame; resource: string }) {
  const said = useSignal('');
  const level = useSignal(4);
  const row = resourceRows(frame).find((one) => one.resource === resource);
  if (row?.phase === undefined) {
    return (
      <p class="note">No route degrades under this name, so there is nothing to hold or release.</p>
    );
  }
  const since = row.own?.sinceMs ?? null;
  const send = (mode: string, at?: number): void => {
    ask<{ revision: number }>(`resources/${encodeURIComponent(resource)}`, {
      mode,
      level: at ?? null,
    }).then(
      ({ revision }) => (said.value = `Written as revision ${revision}; all nodes take it over.`),
      (error: ApiError) => (said.value = error.message),
    );
  };
  return (
    <section aria-label="What operators can do">
      <h3 class="sub">
        {resourceText(row, frame.state.nodeCount)}
        {since !== null && <span>{ago(frame.nowMs - since)}</span>}
      </h3>
      {!frame.canWrite ? (
        <p class="note">This page is read only: nothing can be held or released from here.</p>
      ) : (
        <>
          <div class="actions">
            <label>
              Level{' '}
              <select
                value={level.value}
                onChange={(event) => (level.value = Number(event.currentTarget.value))}
              >
                {LEVEL_NAMES.map((name, index) => (
                  <option key={name} value={index + 1}>
                    {index + 1} {name}
                  </option>
                ))}
              </select>
            </label>
            <button class="ghost" onClick={() => send('forced', level.value)}>
              Hold at this level
            </button>
            <button class="ghost" onClick={() => send('observe')}>
              Only watch
            </button>
            <button class="ghost" onClick={() => send('disabled')}>
              Never degrade
            </button>
            <button class="primary" onClick={() => send('auto')}>
              Release
            </button>
          </div>
          <p class="note" role="status">
            {said.value ||
              'Each is a revision of the configuration, for the whole fleet, and can be rolled back.'}
          </p>
        </>
      )}
    </section>
  );
}
