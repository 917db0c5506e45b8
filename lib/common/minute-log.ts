import { type Cancel, type Clock } from './clock.js';

const MINUTE_MS = 60_000;
/** Names beyond this share one: a name made of an error must not fill the memory. */
const MOST_NAMES = 1000;
const OTHER = '(other)';

/** The lines for events that happen again and again. */
export interface MinuteLines<E> {
  /** The first event, or the first in a minute. */
  once(name: string, event: E): void;
  /** So many more events have come in the minute since; `event` is one of them. */
  again(name: string, count: number, event: E): void;
}

interface Minute<E> {
  count: number;
  event: E | undefined;
  readonly cancel: Cancel;
}

/**
 * At most one line a minute for each name, and no event lost: the first is logged at once, what
 * follows within the minute at its end, all together.
 */
export class MinuteLog<E> {
  private readonly minutes = new Map<string, Minute<E>>();

  constructor(
    private readonly clock: Pick<Clock, 'every'>,
    private readonly lines: MinuteLines<E>,
    /** Which of two is worth telling. Default: the later one. */
    private readonly worse: (one: E, next: E) => E = (_, next) => next,
  ) {}

  add(name: string, event: E): void {
    const known = this.minutes.has(name) || this.minutes.size < MOST_NAMES ? name : OTHER;
    const minute = this.minutes.get(known);
    if (minute === undefined) {
      this.begin(known);
      return this.lines.once(known, event);
    }
    minute.count++;
    minute.event = minute.event === undefined ? event : this.worse(minute.event, event);
  }

  /** Logs the events that are not in the log yet. */
  close(): void {
    for (const name of [...this.minutes.keys()]) this.end(name);
  }

  private begin(name: string): void {
    const cancel = this.clock.every(MINUTE_MS, () => {
      // Events that go on get another minute before the next line.
      if (this.end(name)) this.begin(name);
    });
    this.minutes.set(name, { count: 0, event: undefined, cancel });
  }

  /** True if there was a line to write. */
  private end(name: string): boolean {
    const { count, event, cancel } = this.minutes.get(name)!;
    cancel();
    this.minutes.delete(name);
    if (event === undefined) return false;
    this.lines.again(name, count, event);
    return true;
  }
}

/** A line of a log at its level. */
export interface LevelLine {
  readonly level: 'warn' | 'log';
  readonly text: string;
}

/** Writes such lines as they are, and how often the last of a minute has come. */
export function levelLines(logger: Record<LevelLine['level'], (text: string) => void>) {
  return {
    once: (_: string, { level, text }: LevelLine): void => logger[level](text),
    again: (_: string, count: number, { level, text }: LevelLine): void => {
      const times = count === 1 ? '' : ` (${count} times within a minute)`;
      logger[level](`${text}${times}`);
    },
  };
}
