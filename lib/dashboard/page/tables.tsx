import { useSignal } from '@preact/signals';
import { type ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { type PageFrame } from '../frame.js';
import { ago, count, limit, ms, percent, shown } from './format.js';
import { type ApiError, ask, filter, opened } from './live.js';
import {
  Card,
  Empty,
  LevelMark,
  levelOf,
  Ramp,
  RateCharts,
  resourceText,
  seriesOf,
  Share,
} from './overview.js';

interface Column<Row> {
  readonly title: string;
  readonly isNumber?: boolean;
  /** What rows are sorted by. */
  readonly by: (row: Row) => number | string;
  readonly show: (row: Row) => ComponentChildren;
}

/** More rows than these are made as they are scrolled to. */
const WINDOW = 200;
const ROW_HEIGHT = 33;

interface TableProps<Row> {
  readonly name: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  readonly onOpen?: (row: Row) => void;
  readonly empty: ComponentChildren;
}

/** Sortable, and filtered by what is typed. */
function SortedTable<Row>({ name, rows, columns, keyOf, onOpen, empty }: TableProps<Row>) {
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
        typeof a === 'number' && typeof b === 'number'
          ? a - b
          : String(a).localeCompare(String(b), 'en', { numeric: true });
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
        </span>
      </div>
      {found.length === 0 ? (
        empty
      ) : (
        <div
          class={isLong ? 'scroll long' : 'scroll'}
          tabIndex={0}
          role="group"
          aria-label={name}
          onScroll={(event) => (scrolled.value = event.currentTarget.scrollTop)}
        >
          <table class="rows">
            <caption class="hidden">{name}</caption>
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
                <tr key={keyOf(row)}>
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
    return { ...policy, rate, denied, part: rate > 0 ? denied / rate : 0 };
  });
  const other = seriesOf(frame, 'policy:(other)');
  if (other !== undefined) {
    const { rate, denied } = other;
    const part = rate > 0 ? denied / rate : 0;
    rows.push({
      name: '(other)',
      capacity: 0,
      windowMs: 0,
      shadow: false,
      isNodes: false,
      rate,
      denied,
      part,
    });
  }
  return (
    <>
      <Card id="wide" title="Policies" note="limits by key: what is asked, and what is denied">
        <SortedTable
          name="Policies"
          rows={rows}
          keyOf={({ name }) => name}
          onOpen={({ name }) => (opened.value = `policy:${name}`)}
          empty={<Empty title="No policy of that name.">Clear the filter to see all.</Empty>}
          columns={[
            { title: 'Policy', by: ({ name }) => name, show: ({ name }) => shown(name) },
            {
              title: 'Limit',
              by: ({ capacity, windowMs }) => (windowMs > 0 ? capacity / windowMs : 0),
              show: ({ capacity, windowMs, isNodes }) =>
                windowMs === 0
                  ? 'all without a series of their own'
                  : `${limit(capacity, windowMs)}${isNodes ? ' on each node' : ''}`,
            },
            {
              title: 'Asked/s',
              isNumber: true,
              by: ({ rate }) => rate,
              show: ({ rate }) => count(rate),
            },
            {
              title: 'Denied/s',
              isNumber: true,
              by: ({ denied }) => denied,
              show: ({ denied }) => count(denied),
            },
            {
              title: 'Denied part',
              by: ({ part }) => part,
              show: ({ part }) => <Share part={part} />,
            },
            {
              title: 'State',
              by: ({ shadow }) => (shadow ? 1 : 0),
              show: ({ shadow }) => (shadow ? 'watches only' : 'in force'),
            },
          ]}
        />
      </Card>
      <Sheet frame={frame} />
    </>
  );
}

export function FleetView({ frame }: { readonly frame: PageFrame }) {
  const revision = frame.state.config?.revision ?? 0;
  return (
    <Card
      id="wide"
      title="Fleet"
      note={
        frame.scope === 'fleet'
          ? `${frame.state.nodeCount} nodes; figures of all, merged by one of them`
          : 'this process alone'
      }
    >
      <SortedTable
        name="Nodes"
        rows={frame.nodes}
        keyOf={({ node }) => node}
        empty={<Empty title="No node of that name.">Clear the filter to see all.</Empty>}
        columns={[
          { title: 'Node', by: ({ node }) => node, show: ({ node }) => shown(node) },
          {
            title: 'Requests/s',
            isNumber: true,
            by: ({ rate }) => rate,
            show: ({ rate }) => count(rate),
          },
          {
            title: 'Denied/s',
            isNumber: true,
            by: ({ denied }) => denied,
            show: ({ denied }) => count(denied),
          },
          {
            title: 'Denied part',
            by: ({ rate, denied }) => (rate > 0 ? denied / rate : 0),
            show: ({ rate, denied }) => <Share part={rate > 0 ? denied / rate : 0} />,
          },
          {
            title: 'Revision',
            isNumber: true,
            by: ({ revision: own }) => own,
            show: ({ revision: own }) =>
              own < revision ? <b class="is-degraded">{own}, behind</b> : own,
          },
          {
            title: 'State',
            by: ({ isSilent, storeIsUp }) => (isSilent ? 0 : storeIsUp ? 2 : 1),
            show: ({ isSilent, storeIsUp }) =>
              isSilent ? (
                <b class="is-deny">silent</b>
              ) : storeIsUp ? (
                'well'
              ) : (
                <b class="is-deny">decides without Redis</b>
              ),
          },
        ]}
      />
    </Card>
  );
}

export function ResourcesView({ frame }: { readonly frame: PageFrame }) {
  const rows = frame.state.resources.map((state) => {
    const series = seriesOf(frame, `resource:${state.resource}`);
    const own = frame.resources.find((one) => one.resource === state.resource);
    return { ...state, series, own, level: levelOf(frame, state.resource) };
  });
  return (
    <>
      <Card
        id="wide"
        title="Resources"
        note="what is protected and what degrades; figures of all nodes"
      >
        <SortedTable
          name="Resources"
          rows={rows}
          keyOf={({ resource }) => resource}
          onOpen={({ resource }) => (opened.value = `resource:${resource}`)}
          empty={
            <Empty title="No resource of that name.">
              <code>@Protect('database')</code> and <code>@Degrade</code> make resources.
            </Empty>
          }
          columns={[
            {
              title: 'Resource',
              by: ({ resource }) => resource,
              show: ({ resource }) => shown(resource),
            },
            {
              title: 'Level',
              by: ({ level }) => -level,
              show: ({ level }) => <LevelMark level={level} />,
            },
            {
              title: 'State',
              by: ({ phase }) => phase ?? '',
              show: ({ resource, phase, percent: now, own }) => (
                <>
                  {resourceText(frame, resource)}
                  {phase === 'ramp' && <Ramp stages={own?.stages ?? []} percent={now ?? 0} />}
                </>
              ),
            },
            {
              title: 'Breaker',
              by: ({ breaker }) => breaker ?? '',
              show: ({ breaker }) => breaker ?? '–',
            },
            {
              title: 'Calls/s',
              isNumber: true,
              by: ({ series }) => series?.rate ?? 0,
              show: ({ series }) => count(series?.rate ?? 0),
            },
            {
              title: 'p99',
              isNumber: true,
              by: ({ series }) => series?.p99Ms ?? 0,
              show: ({ series }) => ms(series?.p99Ms),
            },
            {
              title: 'Errors',
              isNumber: true,
              by: ({ series }) => series?.errors ?? 0,
              show: ({ series }) =>
                series === undefined || series.rate === 0
                  ? '–'
                  : percent(series.errors / series.rate),
            },
          ]}
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
      <dl class="pairs">
        <div>
          <dt>asked</dt>
          <dd>{count(series?.rate ?? 0)}/s</dd>
        </div>
        <div>
          <dt>denied</dt>
          <dd>{count(series?.denied ?? 0)}/s</dd>
        </div>
        <div>
          <dt>p50</dt>
          <dd>{ms(series?.p50Ms)}</dd>
        </div>
        <div>
          <dt>p99</dt>
          <dd>{ms(series?.p99Ms)}</dd>
        </div>
      </dl>
      <RateCharts key={name} frame={frame} name={name} />
      {kind === 'resource' && <ResourceActions frame={frame} resource={of} />}
    </div>
  );
}

function ResourceActions({ frame, resource }: { frame: PageFrame; resource: string }) {
  const said = useSignal('');
  const level = useSignal(4);
  const own = frame.resources.find((one) => one.resource === resource);
  const state = frame.state.resources.find((one) => one.resource === resource);
  if (own?.sinceMs === null || own === undefined || state?.phase === undefined) {
    return (
      <p class="note">No route degrades under this name, so there is nothing to hold or release.</p>
    );
  }
  const since = own.sinceMs;
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
        {resourceText(frame, resource)} <span>{ago(frame.nowMs - since)}</span>
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
                <option value="1">1 shared cache</option>
                <option value="2">2 process cache</option>
                <option value="3">3 simplified</option>
                <option value="4">4 default</option>
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
