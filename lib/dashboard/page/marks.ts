import { type Mark } from '../../observability/state.js';
import { shown } from './format.js';

/** A mark of a chart, and the words beside it. */
export interface Label {
  /** Where it stands, in pixels from the left. */
  readonly at: number;
  readonly text: string;
  /** The words end at the mark: to its right there is no room. */
  readonly isLate: boolean;
  /** Which line of words they are in, from the top; undefined where there is no room in any. */
  readonly line: number | undefined;
}

export const LABEL_HEIGHT = 14;
const LINES = 2;
/** Rather more than letters of 11 px need. */
const LETTER = 6.4;
const APART = 10;
/** Marks so close to each other are one. */
const CLOSE = 8;
/** The cause first: what comes with it is one of many. */
const ORDER: readonly Mark['kind'][] = [
  'store',
  'epoch',
  'overload',
  'breaker',
  'revision',
  'mode',
];

/** The labels of events, from left to right; their texts never lie on each other. */
export function labelsOf(
  marks: readonly Mark[],
  x: (atMs: number) => number,
  left: number,
  right: number,
): Label[] {
  const groups: { readonly at: number; readonly marks: Mark[] }[] = [];
  for (const mark of [...marks].sort((one, other) => one.atMs - other.atMs)) {
    const at = x(mark.atMs);
    const last = groups.at(-1);
    if (!(at > left && at < right)) continue;
    if (last !== undefined && at - last.at < CLOSE) last.marks.push(mark);
    else groups.push({ at, marks: [mark] });
  }
  /** How far each line is free, from the left. */
  const free = Array<number>(LINES).fill(right);
  // The latest have the first choice of room.
  const labels = groups.reverse().map(({ at, marks: all }): Label => {
    // Of one kind the latest: what was over and began again has begun.
    const [first] = all.sort(
      (a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind) || b.atMs - a.atMs,
    );
    const others = all.length === 1 ? '' : ` +${all.length - 1}`;
    const words = `${shown(first!.text)}${others}`;
    const width = (words.length + 2) * LETTER;
    for (const isLate of [false, true]) {
      const from = isLate ? at - width : at;
      const line = free.findIndex((end) => from >= 0 && from + width <= end);
      if (line < 0) continue;
      free[line] = from - APART;
      // Between two marks nothing else says whose the words are.
      return { at, text: isLate ? `${words} ›` : `‹ ${words}`, isLate, line };
    }
    return { at, text: words, isLate: false, line: undefined };
  });
  return labels.reverse();
}
