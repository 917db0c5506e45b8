import { ownText } from '../common/ids.js';
import { KeyedHash } from '../common/keyed-hash.js';

/** Cells a row. Measured: of a million requests a period the first ten are found, and none in demand is missed. */
export const DEFAULT_WIDTH = 4096;
export const LEAST_WIDTH = 1024;
export const MOST_WIDTH = 65_536;
/** A cell that is full stays full, so that no count wraps. */
const FULL_CELL = 65_535;
/** A larger threshold could not be told from a full cell. */
export const LARGEST_THRESHOLD = FULL_CELL - 1;
/** Values whose names are kept. */
export const MOST_NAMES = 64;
const { imul } = Math;

/** A value in demand. */
export interface HotValue {
  readonly key: string;
  /** Tokens that were asked for in the last period, on this node; rather more than less. */
  readonly perPeriod: number;
}

interface NamedCount {
  now: number;
  before: number;
}

/**
 * Tokens that were asked for by each of any number of values, in a table of fixed size: four rows of
 * cells, by four hashes that nobody outside can aim, of which each value has one a row. The smallest of
 * its cells is never less than what the value had, because every other value in them only adds; and a
 * cell is raised no further than that value needs, so that rare ones hardly add anything.
 *
 * Invariant: an estimate is at least what the value had in the last period, up to a full cell.
 *
 * Two tables, of this period and of the one before, so that at any instant they hold all of the last period.
 */
export class HotValues {
  private readonly hash: KeyedHash;
  private cells: Uint16Array;
  private past: Uint16Array;
  private endsAt: number;
  private readonly mask: number;
  /** The cells of the value that was just looked for. */
  private a = 0;
  private b = 0;
  private c = 0;
  private d = 0;
  private readonly names = new Map<string, NamedCount>();
  /** No name has less; those that have no name yet need more. */
  private leastNamed = 0;

  constructor(
    private readonly width: number,
    private readonly periodMicros: number,
    now: number,
    seed?: Uint32Array,
  ) {
    this.hash = new KeyedHash(seed);
    this.mask = width - 1;
    this.cells = new Uint16Array(4 * width);
    this.past = new Uint16Array(4 * width);
    this.endsAt = now + periodMicros;
  }

  /** Counts a request of whole tokens, and says what the value had in the last period, that one included. */
  add(key: string, cost: number, now: number): number {
    if (now >= this.endsAt) this.turn(now);
    this.locate(key);
    const { cells, a, b, c, d } = this;
    const sum = this.least(cells) + cost;
    const raised = sum < FULL_CELL ? sum : FULL_CELL;
    if (cells[a]! < raised) cells[a] = raised;
    if (cells[b]! < raised) cells[b] = raised;
    if (cells[c]! < raised) cells[c] = raised;
    if (cells[d]! < raised) cells[d] = raised;
    const before = this.least(this.past);
    if (sum + before > this.leastNamed || sum > FULL_CELL) this.name(key, cost, sum, before);
    return sum + before;
  }

  /** The same without a request. */
  estimate(key: string, now: number): number {
    if (now >= this.endsAt) this.turn(now);
    this.locate(key);
    return this.least(this.cells) + this.least(this.past);
  }

  /** About what the value had in the last period; exact of those with a name, else rather more than less. */
  recent(key: string, now: number): number {
    if (now >= this.endsAt) this.turn(now);
    const part = Math.min(1, (this.endsAt - now) / this.periodMicros);
    const named = this.names.get(key);
    if (named !== undefined) return named.now + named.before * part;
    this.locate(key);
    return this.least(this.cells) + this.least(this.past) * part;
  }

  /** The values most in demand, the first of them first. */
  top(count: number, now: number): HotValue[] {
    if (now >= this.endsAt) this.turn(now);
    // Of the period before as much as still lies in the last one.
    const part = Math.min(1, (this.endsAt - now) / this.periodMicros);
    return Array.from(this.names, ([key, one]) => {
      return { key, perPeriod: Math.ceil(one.now + one.before * part) };
    })
      .sort((one, other) => other.perPeriod - one.perPeriod)
      .slice(0, count);
  }

  private locate(key: string): void {
    const { width, mask } = this;
    const first = this.hash.of(key);
    const second = mixed(first);
    this.a = first & mask;
    this.b = width + ((first >>> 16) & mask);
    this.c = 2 * width + (second & mask);
    this.d = 3 * width + ((second >>> 16) & mask);
  }

  private least(cells: Uint16Array): number {
    const ofTwo = cells[this.a]! < cells[this.b]! ? cells[this.a]! : cells[this.b]!;
    const ofOthers = cells[this.c]! < cells[this.d]! ? cells[this.c]! : cells[this.d]!;
    return ofTwo < ofOthers ? ofTwo : ofOthers;
  }

  private turn(now: number): void {
    const { cells, past, periodMicros } = this;
    const isNext = now < this.endsAt + periodMicros;
    if (!isNext) cells.fill(0);
    past.fill(0);
    this.cells = past;
    this.past = cells;
    this.endsAt = isNext ? this.endsAt + periodMicros : now + periodMicros;
    for (const [key, one] of this.names) {
      one.before = isNext ? one.now : 0;
      one.now = 0;
      if (one.before === 0) this.names.delete(key);
    }
    this.leastNamed = this.names.size < MOST_NAMES ? 0 : sumOf(this.smallest()[1]);
  }

  /** From its first estimate on a value with a name is counted exactly. */
  private name(key: string, cost: number, now: number, before: number): void {
    const { names } = this;
    const known = names.get(key);
    if (known !== undefined) {
      known.now += cost;
      return;
    }
    if (names.size >= MOST_NAMES) {
      const [smallest, least] = this.smallest();
      this.leastNamed = sumOf(least);
      if (now + before <= this.leastNamed) return;
      names.delete(smallest);
    }
    names.set(ownText(key), { now, before });
  }

  private smallest(): [string, NamedCount] {
    return [...this.names].reduce((one, other) => (sumOf(other[1]) < sumOf(one[1]) ? other : one));
  }
}

const sumOf = ({ now, before }: NamedCount): number => now + before;

/** Other bits of the same hash: the end of murmur3. */
function mixed(hash: number): number {
  let bits = imul(hash ^ (hash >>> 16), 0x85ebca6b);
  bits = imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
