import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import { type Clock } from '../common/clock.js';
import { HiddenErrors } from '../common/hidden-errors.js';
import { levelLines, MinuteLog, type LevelLine, type MinuteLines } from '../common/minute-log.js';
import { quoted, quotedError } from '../common/quoted.js';
import { StateLog } from '../common/state-log.js';
import { type RecoveryChange } from './core/contract.js';
import { type NotKeptCause } from './route-answers.js';
import { type WarmedResource } from './route-warming.js';

/**
 * Resources that fall and come back, errors that callers never see, and answers that are not kept. A few
 * lines a minute for each cause, whatever happens; names and messages in quotes.
 */
export class DegradationLog implements OnApplicationShutdown {
  private readonly logger = new Logger('RateLimitModule');
  private readonly states: StateLog;
  private readonly changes: MinuteLog<LevelLine>;
  private readonly hidden: HiddenErrors;
  /** Routes whose answers are not kept, since their callers have no name. */
  private readonly unnamed: MinuteLog<string>;
  /** Routes with an answer that the caches did not keep: they will not keep the next one either. */
  private readonly notKeeping = new Set<string>();

  constructor(clock: Pick<Clock, 'now' | 'every'>) {
    this.states = new StateLog(clock, this.logger);
    this.changes = new MinuteLog(clock, levelLines(this.logger));
    this.hidden = new HiddenErrors(clock, this.logger);
    this.unnamed = new MinuteLog(clock, unnamedLines(this.logger));
  }

  /** A resource of `@Degrade` has another state. */
  readonly recovery = (change: RecoveryChange): void => {
    const { resource, from, to, percent, cause, observing } = change;
    const id = `resource ${resource}`;
    const name = quoted(resource);
    const only = observing ? ' (observed only: callers do not notice)' : '';
    const note = (level: LevelLine['level'], text: string): void =>
      this.changes.add(`${id} ${to}`, { level, text: `${name} ${text}${only}` });
    const isIll = this.states.isOn(id);
    if (from === to && to !== 'ramp') {
      return note('log', observing ? 'is watched.' : 'is not only watched any more.');
    }
    switch (to) {
      case 'degraded':
        // A probe that failed: nothing new.
        if (from === 'probing') return;
        if (from === 'forced') return note('log', 'is tried out again, by probes.');
        if (isIll) return note('warn', 'has failed again on its way back: fallbacks for all.');
        return this.states.began(id, `${name} is degraded, by ${cause}: ${FALLBACKS}${only}`);
      case 'forced':
        if (isIll) return note('log', 'is degraded by an operator, until that is taken back.');
        return this.states.began(id, `${name} is degraded, by an operator: ${FALLBACKS}${only}`);
      case 'ramp':
        if (from === 'ramp') return;
        return note('log', `answers probes: ${percent} % of its traffic now, more by stages.`);
      case 'disabled':
        return note('warn', 'has no fallbacks any more: an operator has disabled them.');
      case 'normal':
        if (!isIll) return note('log', 'is left to itself again.');
        return this.states.over(id, (time) => `${name} is back to normal, after ${time}.${only}`);
      case 'probing':
        return;
    }
  };

  /** A handler has failed, and its caller was given another answer than its error. */
  readonly hiddenError = (where: string, error: unknown): void => this.hidden.add(where, error);

  /** An answer of a route was not kept, since its caller has shown credentials and has no name. */
  readonly unnamedCaller = (route: string): void => this.unnamed.add(route, route);

  /** Once for each route. */
  readonly notKept = (route: string, { vary, type }: NotKeptCause = {}): void => {
    if (this.notKeeping.has(route)) return;
    this.notKeeping.add(route);
    const why =
      vary !== undefined ? variesBy(vary) : type !== undefined ? isOfType(type) : NOT_KEPT;
    this.logger.warn(`${route}: its answers are not kept for levels 1 and 2. ${why}`);
  };

  /** Some questions of a warm-up have failed; `error` is the first one's, if it had any. */
  readonly warmUpFailed = ({ resource, warmed, failed }: WarmedResource, error: unknown): void => {
    const first =
      error === undefined ? 'they have no answer, or none that is kept' : quotedError(error);
    this.logger.warn(
      `Warm-up of '${resource}': ${failed} of ${warmed + failed} questions failed: ${first}`,
    );
  };

  onApplicationShutdown(): void {
    for (const log of [this.hidden, this.unnamed, this.changes, this.states]) log.close();
  }
}

const FALLBACKS = 'callers get fallbacks until it answers probes.';

const UNNAMED =
  'answers are not kept for levels 1 and 2. Requests carry credentials, and nobody knows whose: name the caller ' +
  "with 'user' of the module or 'principal' of @Degrade, or say 'shared: true' if the answer is the same for all";

function unnamedLines(logger: Logger): MinuteLines<string> {
  return {
    once: (_, route) => logger.warn(`${route}: ${UNNAMED}.`),
    again: (_, count, route) => {
      const times = count === 1 ? 'once more' : `${count} times`;
      logger.warn(`${route}: ${UNNAMED} (${times} within a minute).`);
    },
  };
}

const NOT_KEPT =
  'They are over 1 MiB, no JSON, nested too deep, or instances of classes: for these say with ' +
  "'revive' how they are made of plain data, or return plain objects.";

/** They are the application's, but may hold values of a caller. */
const LONGEST_NAME = 64;

function variesBy(header: string): string {
  if (header === '*') return "They say 'Vary: *', so nobody knows what they depend on.";
  const name = quoted(header, LONGEST_NAME);
  return `They say 'Vary' with ${name}, which is no part of their key: name it in 'vary' of @Degrade.`;
}

function isOfType(type: string): string {
  const name = quoted(type, LONGEST_NAME);
  return `Their handler has set 'Content-Type' to ${name}, which a copy would not have: say it with @Header.`;
}
