import { type PageFrame } from '../frame.js';
import { byName, count, notSeen, percent, plural, shown } from './format.js';
import { isHot, lossOf, nodeState, promiseOf, type Taker } from './judge.js';

const WIDTH = 920;
const TANK = { left: 4, width: 134 };
/** Of the tank: below it is the water. */
const UNDER_FIGURES = 258;
const APP = { left: 290, width: 246 };
const NODE = { left: 702, width: 214 };
const MOST_APPS = 12;
const MOST_NODES = 24;
/** How high a band of all tokens is, of both columns together. */
const FULL_BAND = 176;
const LEAST_BAND = 1.5;

interface Place {
  readonly name: string;
  /** Undefined where it is not seen now. */
  readonly rate: number | undefined;
  readonly note: string;
  /** Silent; deciding by itself, or behind; not to be seen. */
  readonly tone: '' | 'off' | 'odd' | 'unseen';
  /** Tokens per second by app. */
  readonly byApp: ReadonlyMap<string, number>;
}

/** The apps of the quota; where there is none, the policies take their place. */
export function takersOf({ state, shares }: PageFrame): Taker[] {
  const { quota, series } = state;
  const all: Taker[] =
    quota !== undefined && quota.apps.length > 0
      ? quota.apps.map(({ app, used, denied, guaranteed, burst, priority }) => {
          const name = shown(app);
          const share = shares?.[app];
          // Of a node on its own the promises of the cluster are no measure.
          const limits = share === undefined ? { guaranteed, ceiling: burst } : { ceiling: share };
          return { name, used, denied, priority, share, ...limits };
        })
      : series
          .filter(({ name }) => name.startsWith('policy:'))
          .map(({ name, rate, denied }) => {
            return { name: shown(name.slice(7)), used: Math.max(0, rate - denied), denied };
          });
  const bySize = (a: Taker, b: Taker): number => b.used + b.denied - a.used - a.denied;
  all.sort((a, b) => (a.priority ?? 9) - (b.priority ?? 9) || bySize(a, b));
  return folded(all, MOST_APPS, bySize, (rest) => ({
    name: `+ ${rest.length} more`,
    used: sum(rest, ({ used }) => used),
    denied: sum(rest, ({ denied }) => denied),
  }));
}

/** The largest nodes, and those with which something is wrong. */
function placesOf({ nodes, state, unseen, scope }: PageFrame, takers: readonly Taker[]): Place[] {
  const { config, quota, nodeCount, series } = state;
  const names = takers.map(({ name }) => name);
  // Apps that are folded into one flow as one.
  const nameOf = (app: string): string => (names.includes(shown(app)) ? shown(app) : names.at(-1)!);
  const rateOf = (byApp: Place['byApp'], rate: number): number =>
    // Tokens, as all of the picture has them: requests are more where some are turned away.
    quota === undefined ? rate : sum([...byApp.values()], (used) => used);
  const seen = nodes.map((one): Place => {
    const [tone, note] = nodeState(one, config?.revision ?? 0);
    const byApp = new Map<string, number>();
    for (const { app, used } of one.apps ?? []) {
      byApp.set(nameOf(app), (byApp.get(nameOf(app)) ?? 0) + used);
    }
    return { name: shown(one.node), rate: rateOf(byApp, one.rate), tone, note, byApp };
  });
  const without = { rate: undefined, tone: 'unseen', byApp: new Map<string, number>() } as const;
  const lost = (unseen?.nodes ?? []).slice(0, MOST_NODES - 4).map(({ node }): Place => {
    return { name: shown(node), note: notSeen(unseen!), ...without };
  });
  const all = [...seen, ...lost].sort((a, b) => byName(a.name, b.name));
  const more = (unseen?.count ?? 0) - lost.length;
  if (more > 0) all.push({ name: `+ ${plural(more, 'node')}`, note: 'not seen', ...without });
  const byTrouble = (a: Place, b: Place): number =>
    Number(a.tone === '') - Number(b.tone === '') || (b.rate ?? 0) - (a.rate ?? 0);
  return folded(all, MOST_NODES, byTrouble, (rest, kept) => {
    // Nodes that the frame has no room for have what is left of the whole.
    const beyond = scope === 'fleet' ? nodeCount - nodes.length : 0;
    const left = (whole: number, of: (one: Place) => number): number =>
      beyond > 0 ? Math.max(0, whole - sum(kept, of)) : sum(rest, of);
    const byApp = new Map(
      takers.map(({ name, used }) => [name, left(used, (one) => one.byApp.get(name) ?? 0)]),
    );
    const total = series.find(({ name }) => name === 'total')?.rate ?? 0;
    const rate = rateOf(
      byApp,
      left(total, (one) => one.rate ?? 0),
    );
    return { name: `+ ${plural(rest.length + beyond, 'node')}`, rate, tone: '', note: '', byApp };
  });
}

/** The first so many by rank, in the order that all have, and the others as one. */
function folded<T>(
  all: readonly T[],
  most: number,
  byRank: (one: T, other: T) => number,
  fold: (rest: readonly T[], kept: readonly T[]) => T,
): T[] {
  if (all.length <= most) return [...all];
  const first = new Set([...all].sort(byRank).slice(0, most - 1));
  const kept = all.filter((one) => first.has(one));
  return [...kept, fold(all.filter((one) => !first.has(one)), kept)]; // oxfmt-ignore
}

const sum = <T,>(all: readonly T[], of: (one: T) => number): number =>
  all.reduce((total, one) => total + of(one), 0);

/** Cluster, apps and nodes, with bands as wide as tokens per second, on one scale. */
export function Flow({ frame }: { readonly frame: PageFrame }) {
  const takers = takersOf(frame);
  const places = placesOf(frame, takers);
  const { quota, series } = frame.state;
  const total = series.find(({ name }) => name === 'total');
  const used = sum(takers, (one) => one.used);
  const denied = sum(takers, (one) => one.denied);
  // While Redis is away, what all asked for was before that.
  const isAway = frame.state.store?.isUp === false;
  const asked = isAway ? used + denied : (quota?.demand ?? used + denied);
  const { shares } = frame;
  const own = shares === null ? undefined : sum(Object.values(shares), (one) => one);
  const capacity = quota?.capacity && (own ?? quota.capacity);
  const scale = FULL_BAND / Math.max(capacity ?? 0, asked, 1);
  const isTight = takers.length > 5;
  const boxHeight = isTight ? 66 : 96;
  const gap = isTight ? 10 : 16;
  const nodeHeight = places.length > 12 ? 16 : 24;
  const nodeGap = places.length > 12 ? 3 : 9;
  const appsHeight = takers.length * (boxHeight + gap) - gap;
  const nodesHeight = places.length * (nodeHeight + nodeGap) - nodeGap;
  const height = Math.max(appsHeight, nodesHeight, 300) + 24;
  const inTank = Math.min(FULL_BAND, Math.max(1, used * scale)) + (takers.length - 1) * 10;
  let tankY = (height - inTank) / 2;
  const first = (height - appsHeight) / 2;
  const firstNode = (height - nodesHeight) / 2;
  const nodeFilled = new Map<string, number>();
  const rows = takers.map((taker, index) => {
    const top = first + index * (boxHeight + gap);
    const sure = Math.min(taker.used, taker.guaranteed ?? taker.used) * scale;
    const lent = Math.max(0, taker.used * scale - sure);
    const bandTop = top + (boxHeight - sure - lent) / 2;
    const from = tankY;
    tankY += sure + lent + 10;
    return { taker, top, sure, lent, bandTop, from };
  });
  const sentence = sentenceOf(takers, capacity, asked);
  return (
    <svg class="flow-picture" viewBox={`0 0 ${WIDTH} ${height}`} role="img" aria-label={sentence}>
      <defs>
        <linearGradient id="spill" x1="0" y1="0" x2="0" y2="1">
          <stop offset="0" class="spill-top" />
          <stop offset="1" class="spill-end" />
        </linearGradient>
        <clipPath id="tank">
          <rect x={TANK.left} y="12" width={TANK.width} height={height - 24} rx="14" />
        </clipPath>
      </defs>
      <Tank {...{ frame, height, asked, used, capacity }} total={total?.rate ?? 0} />
      {rows.map(({ taker, sure, lent, bandTop, from }) => {
        const right = TANK.left + TANK.width;
        let out = bandTop;
        return (
          <g key={taker.name}>
            <Band kind="sure" from={[right, from, sure]} to={[APP.left, bandTop, sure]} />
            <Band
              kind="lent"
              from={[right, from + sure, lent]}
              to={[APP.left, bandTop + sure, lent]}
            />
            {places.map((place, index) => {
              const share = (place.byApp.get(taker.name) ?? 0) * scale;
              if (share < 0.3) return null;
              const nodeTop = firstNode + index * (nodeHeight + nodeGap);
              const all = sum([...place.byApp.values()], (one) => one) * scale;
              const shrunk = Math.min(1, (nodeHeight - 4) / Math.max(all, 0.1));
              const filled = nodeFilled.get(place.name) ?? (nodeHeight - all * shrunk) / 2;
              nodeFilled.set(place.name, filled + share * shrunk);
              const at = out;
              out += share;
              return (
                <Band
                  key={place.name}
                  kind="sure"
                  from={[APP.left + APP.width, at, share]}
                  to={[NODE.left, nodeTop + filled, share * shrunk]}
                />
              );
            })}
          </g>
        );
      })}
      {/* Above all bands: nothing crosses words. */}
      {rows.map(({ taker, top }) => (
        <g key={taker.name}>
          <Box taker={taker} top={top} height={boxHeight} isTight={isTight} />
          {isHot(taker) && <Spill taker={taker} top={top} height={boxHeight} />}
        </g>
      ))}
      {places.map((place, index) => (
        <Node
          key={place.name}
          place={place}
          top={firstNode + index * (nodeHeight + nodeGap)}
          height={nodeHeight}
        />
      ))}
    </svg>
  );
}

function sentenceOf(takers: readonly Taker[], capacity: number | undefined, asked: number): string {
  const each = takers
    .slice(0, 6)
    .map(({ name, used, denied }) => {
      const away = denied >= 1 ? `, ${count(denied)} turned away` : '';
      return `${name} ${count(used)}${away}`;
    })
    .join('; ');
  const of = capacity === undefined ? '' : ` of a capacity of ${count(capacity)}`;
  return `Tokens per second: ${count(asked)} asked for${of}. ${each}.`;
}

type End = readonly [x: number, y: number, width: number];

function Band({ kind, from, to }: { kind: 'sure' | 'lent'; from: End; to: End }) {
  const [x1, y1, h1] = from;
  const [x2, y2, h2] = to;
  if (Math.max(h1, h2) < 0.3) return null;
  const [a, b] = [Math.max(h1, LEAST_BAND), Math.max(h2, LEAST_BAND)];
  const bend = (x2 - x1) / 2;
  const edge =
    `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}V${y2 + b}` +
    `C${x2 - bend} ${y2 + b} ${x1 + bend} ${y1 + a} ${x1} ${y1 + a}Z`;
  const lines = Math.min(5, Math.max(1, Math.round(a / 16)));
  // Three speeds, by how much flows: the eye needs no more, and CSS alone moves it.
  const speed = a > 40 ? 'fast' : a > 12 ? 'even' : 'slow';
  return (
    <g class={`band ${kind}`}>
      <path d={edge} />
      {Array.from({ length: lines }, (_, line) => {
        const part = (line + 0.5) / lines;
        const [p, q] = [y1 + a * part, y2 + b * part];
        return (
          <path
            key={line}
            class={`drops ${speed}`}
            d={`M${x1} ${p}C${x1 + bend} ${p} ${x2 - bend} ${q} ${x2} ${q}`}
          />
        );
      })}
    </g>
  );
}

interface TankProps {
  readonly frame: PageFrame;
  readonly height: number;
  readonly asked: number;
  readonly used: number;
  readonly total: number;
  /** Of the cluster, or what this node may admit without it. */
  readonly capacity: number | undefined;
}

function Tank({ frame, height, asked, used, total, capacity }: TankProps) {
  const { quota } = frame.state;
  const { left, width } = TANK;
  const isAlone = frame.shares !== null;
  const isOver = frame.isShort;
  const level =
    quota?.stock === undefined || !quota.depth || isAlone
      ? undefined
      : Math.min(1, quota.stock / quota.depth);
  // A full one reaches up to the figures, and no level crosses them.
  const surface = height - 12 - (height - 12 - UNDER_FIGURES) * (0.1 + 0.9 * (level ?? 0.5));
  const wave = `M${left} ${surface}q16.75 -6 33.5 0t33.5 0t33.5 0t33.5 0`;
  const facts: [string, string, string?][] =
    capacity === undefined
      ? [
          ['requests', `${count(total)}/s`],
          ['allowed', `${count(used)}/s`],
        ]
      : [
          isAlone
            ? ['share of this node', `${count(capacity)}/s`]
            : ['capacity', `${count(capacity)}/s`],
          ['asked for', `${count(asked)}/s`, loadText(asked / capacity, isOver)],
          [
            'granted',
            `${count(used)}/s`,
            quota?.outstanding === undefined || isAlone
              ? undefined
              : `${count(quota.outstanding)} leased`,
          ],
        ];
  return (
    <g>
      <rect x={left} y="12" width={width} height={height - 24} rx="14" class="tank" />
      <g clip-path="url(#tank)">
        <path class="water" d={`${wave}V${height - 12}H${left}Z`} />
        <path class="surface" d={wave} />
      </g>
      {facts.map(([name, value, note], index) => (
        <g key={name} transform={`translate(${left + 16} ${38 + index * 62})`}>
          <text class="t-small">{name}</text>
          <text class="t-big" y="23">
            {value}
          </text>
          {note !== undefined && (
            <text class={isOver && name === 'asked for' ? 't-deny' : 't-small'} y="40">
              {note}
            </text>
          )}
        </g>
      ))}
      {quota?.stock !== undefined && quota.depth !== undefined && !isAlone && (
        <g transform={`translate(${left + 16} ${UNDER_FIGURES - 32})`}>
          <text class="t-small">in stock</text>
          <text class="t-bold" y="18">
            {count(quota.stock)} of {count(quota.depth)}
          </text>
        </g>
      )}
    </g>
  );
}

const loadText = (part: number, isOver: boolean): string =>
  `${percent(part)}${isOver ? ' · overload' : ' of it'}`;

interface BoxProps {
  readonly taker: Taker;
  readonly top: number;
  readonly height: number;
  readonly isTight: boolean;
}

function Box({ taker, top, height, isTight }: BoxProps) {
  const { name, used, denied, guaranteed, ceiling, priority } = taker;
  const inner = APP.width - 24;
  const left = APP.left + 12;
  const most = ceiling ?? Math.max(used + denied, 1);
  const part = (value: number): number => inner * Math.min(1, value / most);
  const sure = Math.min(used, guaranteed ?? used);
  const textLeft = priority === undefined ? left : left + 24;
  return (
    <g>
      <rect
        x={APP.left}
        y={top}
        width={APP.width}
        height={height}
        rx="10"
        class={isHot(taker) ? 'box hot' : 'box'}
      />
      {priority !== undefined && (
        <g>
          <rect x={left} y={top + 10} width="19" height="17" rx="5" class="priority" />
          <text x={left + 9.5} y={top + 22.5} class="t-tiny t-middle">
            P{priority}
          </text>
        </g>
      )}
      <text x={textLeft} y={top + 23} class="t-bold">
        {name.length > 16 ? `${name.slice(0, 15)}…` : name}
      </text>
      <text x={left + inner} y={top + 23} class="t-bold t-end">
        {count(used)}/s
      </text>
      <rect x={left} y={top + 35} width={inner} height="8" rx="4" class="track" />
      <rect x={left} y={top + 35} width={part(used)} height="8" rx="4" class="fill lent" />
      <rect x={left} y={top + 35} width={part(sure)} height="8" rx="4" class="fill" />
      {guaranteed !== undefined && (
        <path class="tick" d={`M${left + part(guaranteed)} ${top + 32}v14`} />
      )}
      {!isTight && (
        <text x={left} y={top + 63} class="t-small">
          {promiseOf(taker)}
        </text>
      )}
      <text x={left} y={top + height - 12} class={isHot(taker) ? 't-deny' : 't-small'}>
        {lossOf(taker)}
      </text>
    </g>
  );
}

/** Denied requests fall over the edge. */
function Spill({ taker, top, height }: { taker: Taker; top: number; height: number }) {
  const x = APP.left + APP.width;
  const y = top + height - 30;
  const width = 6 + 16 * Math.min(1, taker.denied / (taker.used + taker.denied));
  const fall = `M${x} ${y}c18 0 26 8 26 26v30h${-width}v-24c0 -12 -6 -${Math.max(2, 20 - width)} -${26 - width} -${Math.max(2, 20 - width)}z`;
  return (
    <g>
      <path class="spill" d={fall} />
      <path
        class="drops deny even"
        d={`M${x} ${y + 5}c14 0 ${24 - width / 2} 6 ${26 - width / 2} 24v26`}
      />
    </g>
  );
}

function Node({ place, top, height }: { place: Place; top: number; height: number }) {
  const { name, rate, note, tone } = place;
  const baseline = top + height / 2 + 4;
  const right = NODE.left + NODE.width - 9;
  const most = note === '' ? 16 : 9;
  return (
    <g>
      <rect x={NODE.left} y={top} width={NODE.width} height={height} rx="6" class={`box ${tone}`} />
      <text x={NODE.left + 10} y={baseline} class={tone === 'unseen' ? 't-small' : ''}>
        {name.length > most ? `${name.slice(0, most - 1)}…` : name}
      </text>
      <text
        x={rate === undefined ? right : right - 48}
        y={baseline}
        class={`t-end ${tone === 'off' ? 't-deny' : tone === 'odd' ? 't-odd' : 't-small'}`}
      >
        {note}
      </text>
      {rate !== undefined && (
        <text x={right} y={baseline} class="t-end">
          {count(rate)}/s
        </text>
      )}
    </g>
  );
}

/** The same for a narrow screen, where a picture of three columns is too small to read. */
export function FlowList({ frame }: { readonly frame: PageFrame }) {
  const takers = takersOf(frame);
  return (
    <ul class="flow-list">
      {takers.map((taker) => {
        const { name, used, denied, guaranteed, ceiling } = taker;
        const most = ceiling ?? Math.max(used + denied, 1);
        const part = (value: number): string => `${Math.min(100, (100 * value) / most)}%`;
        return (
          <li key={name} class={isHot(taker) ? 'hot' : ''}>
            <b>{name}</b>
            <span>{count(used)}/s</span>
            <div class="bar">
              <i class="lent" style={{ width: part(used) }} />
              <i style={{ width: part(Math.min(used, guaranteed ?? used)) }} />
              {guaranteed !== undefined && <b style={{ left: part(guaranteed) }} />}
            </div>
            <small>
              {promiseOf(taker)} · {isHot(taker) ? <em>{lossOf(taker)}</em> : lossOf(taker)}
            </small>
          </li>
        );
      })}
      <li class="dim">
        {frame.unseen === null
          ? `${plural(frame.state.nodeCount, 'node')} decide`
          : `${shown(frame.seenFrom)} alone; ${plural(frame.unseen.count, 'other node')} not seen`}
      </li>
    </ul>
  );
}
