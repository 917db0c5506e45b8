import { type Clock } from '../../common/clock.js';
import { InvalidArgumentError } from '../../common/errors.js';
import { newIncarnation } from '../../common/ids.js';
import { oneOf } from '../../common/validate.js';
import { type BoardStore } from '../../stores/board-store.js';
import { RULE_NAMES, type RuleName } from './rule-names.js';
import { type Mute } from './rules.js';

/** A rule that somebody has asked to be quiet. */
export interface Muted {
  readonly rule: RuleName;
  readonly mute: Mute;
}

const MOST_MUTES = 100;
const LONGEST_SERIES = 200;
/** How often it is tried where several write at once. */
const TRIES = 5;
/** On the board, under this name, for as long as a mute may last. */
const NAME = 'mutes';
const KEPT_MS = 8 * 24 * 3_600_000;

/** Mutes by calls. In a fleet they are on the board: whoever tells of alerts has to know of them. */
export class Mutes {
  private own: readonly Muted[] = [];

  constructor(
    private readonly clock: Pick<Clock, 'now' | 'epochMs'>,
    private readonly changed: (mutes: readonly Muted[]) => void,
    private readonly board?: BoardStore,
  ) {}

  /** Resolves when all who tell of alerts can know. */
  async add(rule: string, series: string | undefined, until: Date): Promise<void> {
    oneOf('rule', rule, RULE_NAMES);
    if (!(until instanceof Date) || Number.isNaN(until.getTime())) {
      throw new InvalidArgumentError('until', until, 'a Date');
    }
    const added = { rule: rule as RuleName, mute: { series, untilMs: until.getTime() } };
    // Here it holds at once, whatever becomes of the rest.
    this.use([...this.own, added]);
    for (let tried = 0; this.board !== undefined && tried < TRIES; tried++) {
      const held = await this.board.marked(NAME);
      const all = this.living([...mutesOf(held?.text), added]);
      const next = { mark: newIncarnation(), text: JSON.stringify(all) };
      if (await this.board.swap(NAME, held?.mark, next, KEPT_MS)) return this.use(all);
    }
  }

  /** The mutes of other nodes. */
  async read(): Promise<void> {
    const held = await this.board?.marked(NAME);
    if (held !== undefined) this.use(this.living(mutesOf(held.text)));
  }

  private use(mutes: readonly Muted[]): void {
    this.own = this.living(mutes);
    this.changed(this.own);
  }

  private living(mutes: readonly Muted[]): Muted[] {
    const nowMs = this.clock.epochMs(this.clock.now());
    return mutes.filter(({ mute }) => mute.untilMs > nowMs).slice(-MOST_MUTES);
  }
}

/** Anybody who may write to the store can have put it there. */
function mutesOf(text: string | undefined): Muted[] {
  try {
    const all: unknown = JSON.parse(text ?? '[]');
    return Array.isArray(all) ? all.filter(isMuted) : [];
  } catch {
    return [];
  }
}

function isMuted(one: unknown): one is Muted {
  const { rule, mute } = (one ?? {}) as Partial<Muted>;
  if (!RULE_NAMES.includes(rule!) || typeof mute?.untilMs !== 'number') return false;
  const { series } = mute;
  return series === undefined || (typeof series === 'string' && series.length <= LONGEST_SERIES);
}
