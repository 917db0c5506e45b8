import { ownText, spread } from '../common/ids.js';
import { type DecisionSource } from './decision.js';

const CELLS = 1024;
const ALL_HASHES = 2 ** 32;
/** The most notes in a second: more would cost more than they are worth. */
const MOST_NOTES = 2000;
const FEW_NOTES = MOST_NOTES / 4;
const MOST_SKIP = 2 ** 20;
/** While nobody watches: so many denials until the next look whether somebody does. */
const UNWATCHED = 2 ** 30;
const SECONDS_OF_MINUTE = 60;

/** A key that was denied often in the last minute. */
export interface DeniedKey {
  readonly policy: string;
  readonly key: string;
  /** About how often in the last minute. */
  readonly denied: number;
  /** Where it was denied last. */
  readonly source: DecisionSource;
}

interface Cell {
  policy: string;
  key: string;
  /** What keeps the key in its cell: other keys count it down, and time halves it. */
  hold: number;
  /** Its denials of this minute and of the one before. */
  minute: number;
  before: number;
  source: DecisionSource;
}

/**
 * The keys that are denied most, in a table of fixed size. Keys that meet in a cell count each other down, so
 * that only one that comes more often than the others there stays. In a flood only one denial of many is noted,
 * and stands for all of them: of 100,000 keys nine or ten of the top ten are found so, for 10 to 15 ns a
 * denial instead of 73 to 195, measured.
 */
export class DeniedKeys {
  /** Denials until the next note; the limiter counts it down. */
  untilNextNote = UNWATCHED;
  private cells: (Cell | undefined)[] | undefined;
  private skip = 1;
  private notes = 0;
  private seconds = 0;
  private random = 0x9e3779b9;

  /** From now on denials are noted. */
  watch(): void {
    this.cells ??= new Array<Cell | undefined>(CELLS).fill(undefined);
    this.untilNextNote = 1;
  }

  /** Notes a denial, once `untilNextNote` is down to it. Most come from buckets of this process, so `source` is that by default. */
  note(policy: string, key: string, source: DecisionSource = 'local'): void {
    if (this.cells === undefined) {
      this.untilNextNote = UNWATCHED;
      return;
    }
    const { skip } = this;
    if (++this.notes >= MOST_NOTES && skip < MOST_SKIP) {
      this.skip = skip * 2;
      this.notes = 0;
    }
    this.untilNextNote = this.nextDistance();
    this.add(policy, key, skip, source);
  }

  /** A second has passed. */
  tick(): void {
    if (this.notes < FEW_NOTES && this.skip > 1) this.skip /= 2;
    this.notes = 0;
    // A flood that is over left a long way to the next note.
    if (this.cells !== undefined && this.untilNextNote >= 2 * this.skip)
      this.untilNextNote = this.nextDistance();
    if (++this.seconds % SECONDS_OF_MINUTE === 0) this.turn();
  }

  /** The keys with the most denials, most first. */
  top(count: number): DeniedKey[] {
    // Of the minute before so much is still within the last sixty seconds.
    const rest = 1 - (this.seconds % SECONDS_OF_MINUTE) / SECONDS_OF_MINUTE;
    return (this.cells ?? [])
      .flatMap((cell): DeniedKey | [] => {
        if (cell === undefined) return [];
        const { policy, key, minute, before, source } = cell;
        const denied = Math.round(minute + before * rest);
        return denied > 0 ? { policy, key, denied, source } : [];
      })
      .sort((one, other) => other.denied - one.denied)
      .slice(0, count);
  }

  private add(policy: string, key: string, weight: number, source: DecisionSource): void {
    const cells = this.cells!;
    const place = (spread(key, ALL_HASHES) + spread(policy, ALL_HASHES)) % CELLS;
    const cell = cells[place];
    if (cell === undefined) {
      const own = ownText(key);
      cells[place] = { policy, key: own, hold: weight, minute: weight, before: 0, source };
    } else if (cell.policy === policy && cell.key === key) {
      cell.hold += weight;
      cell.minute += weight;
      cell.source = source;
    } else if ((cell.hold -= weight) < 0) {
      const own = ownText(key);
      Object.assign(cell, { policy, key: own, hold: weight, minute: weight, before: 0, source });
    }
  }

  /** A minute has passed: keys that are denied no longer make room. */
  private turn(): void {
    const { cells } = this;
    if (cells === undefined) return;
    for (let place = 0; place < CELLS; place++) {
      const cell = cells[place];
      if (cell === undefined) continue;
      cell.hold = Math.floor(cell.hold / 2);
      cell.before = cell.minute;
      cell.minute = 0;
      if (cell.hold === 0 && cell.before === 0) cells[place] = undefined;
    }
  }

  /** On average every `skip`-th denial, but at no fixed distance: traffic has rhythms of its own. */
  private nextDistance(): number {
    const { skip } = this;
    if (skip === 1) return 1;
    let random = this.random;
    random ^= random << 13;
    random ^= random >>> 17;
    random ^= random << 5;
    this.random = random;
    return 1 + ((random >>> 0) % (2 * skip - 1));
  }
}
