import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { type Mark } from '../../observability/state.js';
import { clock, count } from './format.js';
import { LABEL_HEIGHT, labelsOf } from './marks.js';

/** Columns of one length; null is no data, which is another thing than 0. */
export interface ChartData {
  /** Seconds since 1970. */
  readonly at: readonly number[];
  readonly allowed: readonly (number | null)[];
  readonly degraded: readonly (number | null)[];
  readonly denied: readonly (number | null)[];
}

interface ChartProps {
  readonly data: ChartData;
  readonly height: number;
  /** All of it, or only what was not answered normally, on its own scale. */
  readonly part: 'all' | 'troubled';
  readonly capacity?: number | undefined;
  readonly marks: readonly Mark[];
  readonly spanSeconds: number;
  /** Seconds since 1970. */
  readonly end: number;
  readonly label: string;
}

const LEFT = 46;
const RIGHT = 14;
const TOP = 12;
const BOTTOM = 20;
const LAYERS = {
  all: ['allow', 'degraded', 'deny'],
  troubled: ['degraded', 'deny'],
} as const;

/** As wide as its place: a picture that is made smaller has words that nobody can read. */
export function useWidth() {
  const host = useRef<HTMLDivElement>(null);
  const width = useSignal(600);
  useEffect(() => {
    const sized = new ResizeObserver(([entry]) => {
      const { width: now } = entry!.contentRect;
      if (now > 0) width.value = Math.round(now);
    });
    sized.observe(host.current!);
    return () => sized.disconnect();
  }, []);
  return { host, width };
}

/**
 * Areas that lie on each other. As SVG of our own: two kinds of chart need three of these functions, and a library of
 * charts would be as large as the rest of the page.
 */
export function Chart(props: ChartProps) {
  const { data, height, part, capacity, marks, spanSeconds, end, label } = props;
  const { host, width } = useWidth();
  const pointed = useSignal<number | null>(null);
  const layers = layersOf(data, part);
  const begin = end - spanSeconds;
  const most =
    Math.max(1, capacityOf(part, capacity), ...layers.at(-1)!.map((one) => one ?? 0)) * 1.12;
  const right = width.value - RIGHT;
  const x = (at: number): number => LEFT + ((at - begin) / spanSeconds) * (right - LEFT);
  const labels = labelsOf(marks, (atMs) => x(atMs / 1000), LEFT, right);
  // The words stand above the lower chart, in as many lines as they need.
  const lines = part === 'all' ? 0 : Math.max(0, ...labels.map(({ line = -1 }) => line + 1));
  const top = TOP + lines * LABEL_HEIGHT;
  const y = (value: number): number => height - BOTTOM - (value / most) * (height - BOTTOM - top);
  const point = (event: PointerEvent): void => {
    const { left } = host.current!.getBoundingClientRect();
    const at = begin + ((event.clientX - left - LEFT) / (right - LEFT)) * spanSeconds;
    const index = data.at.findIndex((one) => one >= at);
    pointed.value = index < 0 ? null : index;
  };
  return (
    <div
      ref={host}
      class="chart"
      onPointerMove={point}
      onPointerLeave={() => (pointed.value = null)}
    >
      <svg width={width.value} height={height} role="img" aria-label={label}>
        {ticksOf(most).map((tick) => (
          <g key={tick}>
            <path class="ground" d={`M${LEFT} ${y(tick).toFixed(1)}H${right}`} />
            <text class="t-small t-end" x={LEFT - 8} y={y(tick) + 4}>
              {count(tick)}
            </text>
          </g>
        ))}
        {[0, 0.25, 0.5, 0.75, 1].map((step) => (
          <text
            key={step}
            class={`t-small ${step === 1 ? 't-end' : step === 0 ? '' : 't-middle'}`}
            x={step === 1 ? right + RIGHT - 2 : LEFT + step * (right - LEFT)}
            y={height - 4}
          >
            {sinceText((1 - step) * spanSeconds)}
          </text>
        ))}
        {LAYERS[part].map((tone, index) => {
          const { area, edge } = pathsOf(data.at, layers[index]!, layers[index - 1], x, y, begin);
          return (
            <g key={tone} class={`layer ${tone} ${part}`}>
              <path class="area" d={area} />
              <path class="edge" d={edge} />
            </g>
          );
        })}
        <g class="marks">
          {labels.map(({ at, line, text, isLate }) => (
            <g key={`${at} ${text}`}>
              {/* Up to its words, which may stand on either side of it. */}
              <path
                d={`M${at.toFixed(1)} ${part === 'all' || line === undefined ? top : TOP - 10 + line * LABEL_HEIGHT}V${height - BOTTOM}`}
              />
              {part !== 'all' && line !== undefined && (
                <text
                  class={`t-mark ${isLate ? 't-end' : ''}`}
                  x={isLate ? at - 4 : at + 4}
                  y={TOP - 2 + line * LABEL_HEIGHT}
                >
                  {text}
                </text>
              )}
            </g>
          ))}
        </g>
        {capacity !== undefined && part === 'all' && (
          <>
            <path class="capacity-line" d={`M${LEFT} ${y(capacity).toFixed(1)}H${right}`} />
            <text class="t-mark" x={LEFT + 6} y={y(capacity) - 5}>
              capacity {count(capacity)}
            </text>
          </>
        )}
        {pointed.value !== null && (
          <path class="pointer" d={`M${x(data.at[pointed.value]!)} ${top}V${height - BOTTOM}`} />
        )}
      </svg>
      {pointed.value !== null && <Pointed data={data} index={pointed.value} />}
    </div>
  );
}

const capacityOf = (part: ChartProps['part'], capacity: number | undefined): number =>
  part === 'all' ? (capacity ?? 0) : 0;

type Points = readonly (number | null)[];

/** Each on top of those before it. */
function layersOf({ allowed, degraded, denied }: ChartData, part: ChartProps['part']): Points[] {
  let below: Points | undefined;
  return (part === 'all' ? [allowed, degraded, denied] : [degraded, denied]).map((column) => {
    const base = below;
    below = column.map((one, index) => {
      const under = base === undefined ? 0 : base[index];
      return one === null || under === null || under === undefined ? null : one + under;
    });
    return below;
  });
}

/** A gap in the data is a gap in the picture. */
function pathsOf(
  at: readonly number[],
  top: Points,
  below: Points | undefined,
  x: (at: number) => number,
  y: (value: number) => number,
  begin: number,
): { area: string; edge: string } {
  let area = '';
  let edge = '';
  let run: number[] = [];
  const close = (): void => {
    if (run.length > 0) {
      const line = run.map((i) => `${x(at[i]!).toFixed(1)} ${y(top[i]!).toFixed(1)}`).join('L');
      const back = [...run]
        .reverse()
        .map((i) => `${x(at[i]!).toFixed(1)} ${y(below?.[i] ?? 0).toFixed(1)}`)
        .join('L');
      area += `M${line}L${back}Z`;
      edge += `M${line}`;
    }
    run = [];
  };
  at.forEach((one, index) => {
    if (one < begin) return;
    const [value, under] = [top[index] ?? null, below?.[index] ?? 0];
    // A layer of nothing has no edge either: it would paint over the one below it.
    const isFlat =
      below !== undefined && value === under && (top[index + 1] ?? 0) === (below[index + 1] ?? 0);
    if (value === null || (isFlat && run.length === 0)) close();
    else {
      run.push(index);
      if (isFlat) close();
    }
  });
  close();
  return { area, edge };
}

/** Two to four round numbers. */
function ticksOf(most: number): number[] {
  const rough = most / 3.5;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((one) => one * size >= rough)! * size;
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step);
}

function sinceText(seconds: number): string {
  if (seconds < 1) return 'now';
  if (seconds < 300) return `−${Math.round(seconds)} s`;
  if (seconds < 6 * 3600) return `−${Math.round(seconds / 60)} min`;
  const days = seconds / 86_400;
  return days < 1 ? `−${Math.round(seconds / 3600)} h` : `−${Number(days.toFixed(1))} d`;
}

function Pointed({ data, index }: { data: ChartData; index: number }) {
  const text = (value: number | null | undefined): string =>
    value === null || value === undefined ? 'no data' : `${count(value)}/s`;
  return (
    <p class="pointed" aria-hidden="true">
      {clock(data.at[index]! * 1000)} · allowed {text(data.allowed[index])} · degraded{' '}
      {text(data.degraded[index])} · denied {text(data.denied[index])}
    </p>
  );
}

/** A line of one figure, without axes. */
export function Spark({ values, label }: { values: readonly (number | null)[]; label: string }) {
  const [width, height] = [400, 44];
  const most = Math.max(0.001, ...values.map((one) => one ?? 0)) * 1.15;
  const step = width / Math.max(1, values.length - 1);
  const points = values.flatMap((one, index) =>
    one === null
      ? []
      : `${(index * step).toFixed(1)} ${(height - 2 - (one / most) * (height - 6)).toFixed(1)}`,
  );
  const line = `M${points.join('L')}`;
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {points.length > 1 && (
        <>
          <path class="area" d={`${line}V${height}H${Number.parseFloat(points[0]!)}Z`} />
          <path class="line" d={line} />
        </>
      )}
    </svg>
  );
}
