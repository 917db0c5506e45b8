import { type BoardStore } from '../../stores/board-store.js';
import { BreakerMarks, keptMarks } from '../marks.js';
import { type FleetNode, type Mark, type ResourceState } from '../state.js';

/** On the board, under this name. */
const NAME = 'marks';
const KEPT_MS = 8 * 24 * 3_600_000;
const LONGEST_TEXT = 160;
const NONE = '[]';
const KINDS: readonly unknown[] = [
  ...['overload', 'quota', 'revision', 'store', 'mode', 'epoch', 'breaker'],
];
/** Two processes see the same event within so long of each other. */
const SAME_MS = 15_000;

/** The events that one node alone knows of. */
interface Seen {
  /** Of the node that merges. */
  readonly own: readonly Mark[];
  readonly resources: readonly ResourceState[];
  readonly nodes: readonly FleetNode[];
  readonly atMs: number;
}

/**
 * The events of a fleet. The node that merges has seen those of the store and of the configuration itself, and sees the
 * breakers of all; the whole list is on the board, so that none is lost with the process that saw it.
 */
export class FleetMarks {
  private theirs: readonly Mark[] = [];
  private opened: Mark[] = [];
  private breakers = new BreakerMarks();
  private written = NONE;

  constructor(private readonly board: BoardStore) {}

  /** This process merges from now on: what those before it have seen stays. */
  async restore(): Promise<void> {
    this.written = (await this.board.get(NAME)) ?? NONE;
    this.theirs = marksOf(this.written);
    this.opened = [];
    this.breakers = new BreakerMarks();
  }

  /** All that are known by now. */
  async keep({ own, resources, nodes, atMs }: Seen): Promise<Mark[]> {
    this.opened.push(
      ...this.breakers.look(resources, atMs, (resource) => whereOpen(resource, nodes)),
    );
    // Of breakers those of all nodes are told, the own among them.
    const seen = [...own.filter(({ kind }) => kind !== 'breaker'), ...this.opened];
    // The clock of another may be an hour ahead: what is yet to come has no place in a chart.
    const others = this.theirs.filter(
      (one) => one.atMs <= atMs && !seen.some((other) => isSame(one, other)),
    );
    const marks = keptMarks([...others, ...seen], atMs);
    this.opened = this.opened.filter((one) => marks.includes(one));
    const text = JSON.stringify(marks.map(wireOf));
    if (text !== this.written && this.board.isShared) {
      await this.board.set(NAME, text, KEPT_MS);
      this.written = text;
    }
    return marks;
  }
}

const isSame = (one: Mark, other: Mark): boolean =>
  one.kind === other.kind && one.text === other.text && Math.abs(one.atMs - other.atMs) < SAME_MS;

function whereOpen(resource: string, nodes: readonly FleetNode[]): string {
  const open = nodes.filter((one) => one.open?.includes(resource) === true);
  if (nodes.length === 1 || open.length === 0) return '';
  return open.length === 1 ? ` on ${open[0]!.node}` : ` on ${open.length} nodes`;
}

const wireOf = ({ atMs, kind, text }: Mark) => [atMs, kind, text.slice(0, LONGEST_TEXT)];

/** Checks all of it: anybody who may write to the store can have put it there. */
function marksOf(text: string): Mark[] {
  try {
    const wire = JSON.parse(text) as unknown;
    return Array.isArray(wire) ? wire.flatMap((one: unknown) => markOf(one) ?? []) : [];
  } catch {
    return [];
  }
}

function markOf(wire: unknown): Mark | undefined {
  if (!Array.isArray(wire)) return undefined;
  const [atMs, kind, text] = wire as unknown[];
  if (!Number.isFinite(atMs) || !KINDS.includes(kind) || typeof text !== 'string') return undefined;
  return {
    ...{ atMs: atMs as number, kind: kind as Mark['kind'], text: text.slice(0, LONGEST_TEXT) },
  };
}
