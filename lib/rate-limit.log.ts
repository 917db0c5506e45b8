import { Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { SystemClock } from './common/clock.js';
import { RateLimitError } from './common/errors.js';
import { MinuteLog, type MinuteLines } from './common/minute-log.js';
import { quoted, quotedError, withoutSteering } from './common/quoted.js';
import { StateLog } from './common/state-log.js';
import { type RecoveryChange } from './degradation/core/contract.js';
import { type FailureMode } from './limiter/policy-options.js';
import { type RateLimiter } from './limiter/rate-limiter.js';
import { type HeldSlot, type SlowCall } from './protection/events.js';
import { type Protection } from './protection/protection.js';
import { type RateLimitModuleOptions } from './rate-limit.options.js';

/** A handler's error that no caller saw. */
interface HiddenError {
  readonly route: string;
  readonly error: unknown;
}

interface Line {
  readonly level: 'warn' | 'log';
  readonly text: string;
}

/** Names that a line lists; of more it says how many. */
const MOST_NAMES = 5;
const MOST_FRAMES = 20;
const LONGEST_FRAME = 200;
const LONGEST_REASON = 200;

/**
 * What the module says of itself: Redis lost and found, apps that do without it, overload, resources that
 * fall and come back, slow calls, and errors that callers never see. A few lines a minute for each cause,
 * whatever happens; names and messages in quotes.
 */
export class ModuleLog implements OnModuleInit, OnApplicationShutdown {
  private readonly logger = new Logger('RateLimitModule');
  private readonly ofProtection = new Logger('Protection');
  private readonly states: StateLog;
  private readonly changes: MinuteLog<Line>;
  private readonly breakers: MinuteLog<Line>;
  private readonly slow: MinuteLog<SlowCall>;
  private readonly held: MinuteLog<HeldSlot>;
  private readonly hidden: MinuteLog<HiddenError>;
  /** Routes whose answers are not kept, since nobody knows whose they are. */
  private readonly unnamed: MinuteLog<string>;
  /** Apps that do without the store. */
  private readonly offline = new Set<string>();

  constructor(private readonly options: RateLimitModuleOptions) {
    const clock = options.clock ?? new SystemClock();
    this.states = new StateLog(clock, this.logger);
    this.changes = new MinuteLog(clock, changeLines(this.logger));
    this.breakers = new MinuteLog(clock, changeLines(this.ofProtection));
    this.slow = new MinuteLog(clock, slowLines(this.ofProtection), longer);
    this.held = new MinuteLog(clock, heldLines(this.ofProtection), longer);
    this.hidden = new MinuteLog(clock, hiddenLines(this.logger));
    this.unnamed = new MinuteLog(clock, unnamedLines(this.logger));
  }

  listenTo(limiter: RateLimiter): void {
    limiter.on('store', (event) => {
      if (event.state === 'down') {
        const reason = quoted(event.reason.message, LONGEST_REASON);
        const text = `The store is lost: ${reason}. ${meanwhile(limiter, this.options)}`;
        return this.states.began('store', text);
      }
      this.states.over('store', (time) => `The store is back, after ${time}: it decides again.`);
    });
    limiter.on('mode', ({ app, mode }) => {
      const isOffline = mode === 'offline';
      if (isOffline === this.offline.has(app)) return;
      if (isOffline) this.offline.add(app);
      else this.offline.delete(app);
      // All apps of a process go at once, so one line is for all of them.
      queueMicrotask(() => this.tellOffline());
    });
    limiter.on('overload', ({ overloaded }) => {
      if (overloaded) this.states.began('overload', OVERLOADED);
      else this.states.over('overload', (time) => `The cluster's overload is over, after ${time}.`);
    });
  }

  listenToProtection(protection: Protection): void {
    protection.on('slow', (call) => this.slow.add(call.resource, call));
    protection.on('fallback', ({ resource, error }) => {
      this.hiddenError(`Resource ${quoted(resource)}`, error);
    });
    protection.on('held', (slot) => this.held.add(slot.resource, slot));
    protection.on('breaker', ({ resource, from, to, observed, window }) => {
      const why = window && ` (${window.failures} failed, ${window.slow} slow of ${window.calls})`;
      const would = observed ? ' (observed only)' : '';
      const text = `Breaker of ${quoted(resource)}: ${from} → ${to}${why ?? ''}${would}`;
      this.breakers.add(`${resource} ${from} ${to}`, { level: 'warn', text });
    });
  }

  /** A resource of `@Degrade` has another state. */
  readonly recovery = (change: RecoveryChange): void => {
    const { resource, from, to, percent, cause, observing } = change;
    const id = `resource ${resource}`;
    const name = quoted(resource);
    const only = observing ? ' (observed only: callers do not notice)' : '';
    const note = (level: Line['level'], text: string): void =>
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
  readonly hiddenError = (route: string, error: unknown): void => {
    this.hidden.add(`${route} ${nameOf(error)}`, { route, error });
  };

  /** An answer of a route was not kept, since its caller has shown credentials and has no name. */
  readonly unnamedCaller = (route: string): void => this.unnamed.add(route, route);

  onModuleInit(): void {
    if (!this.options.enabled) this.logger.warn(SWITCHED_OFF);
  }

  onApplicationShutdown(): void {
    const { slow, held, breakers, hidden, unnamed, changes, states } = this;
    for (const log of [slow, held, breakers, hidden, unnamed, changes, states]) log.close();
  }

  private tellOffline(): void {
    const { app, quota } = this.options;
    const served = quota?.local?.apps ?? (typeof app === 'string' ? [app] : undefined);
    const names = [...this.offline].filter((name) => served?.includes(name) ?? true);
    if (names.length === 0) {
      return this.states.over(
        'apps',
        (time) => `Apps are decided by the quota again, after ${time}.`,
      );
    }
    const [apps, are] = names.length === 1 ? ['App', 'is'] : ['Apps', 'are'];
    this.states.began(
      'apps',
      `${apps} ${listed(names)} ${are} offline: decided by this process's share of the guarantee.`,
    );
  }
}

const SWITCHED_OFF =
  'SWITCHED OFF by enabled: false: NO limit, fallback or protection holds in this process, and the store is not opened.';

const FALLBACKS = 'callers get fallbacks until it answers probes.';

const OVERLOADED =
  'The cluster is overloaded: all apps together ask for more than nine tenths of its capacity. Guarantees ' +
  'hold; what is beyond them is shared by priority.';

/** What decides while the store is away. */
function meanwhile(limiter: RateLimiter, { quota }: RateLimitModuleOptions): string {
  const by: Record<FailureMode, string[]> = { local: [], open: [], closed: [] };
  for (const name of limiter.policyNames()) {
    const mode = limiter.policy(name)?.failureMode;
    if (mode !== undefined) by[mode].push(name);
  }
  const parts = [
    by.local.length > 0 && `this process's share for ${listed(by.local)} (failure mode local)`,
    by.open.length > 0 && `nobody for ${listed(by.open)}: all pass (open)`,
    by.closed.length > 0 && `nobody for ${listed(by.closed)}: all are refused (closed)`,
    quota !== undefined && "this process's share of the guarantees for the quota",
  ].filter((part) => part !== false);
  return parts.length === 0 ? 'No limit needs it.' : `Meanwhile decides: ${parts.join('; ')}.`;
}

function listed(names: readonly string[]): string {
  const told = names
    .toSorted()
    .slice(0, MOST_NAMES)
    .map((name) => quoted(name));
  const more = names.length - told.length;
  return more > 0 ? `${told.join(', ')} and ${more} more` : told.join(', ');
}

function changeLines(logger: Logger): MinuteLines<Line> {
  return {
    once: (_, { level, text }) => logger[level](text),
    again: (_, count, { level, text }) => {
      const times = count === 1 ? '' : ` (${count} times within a minute)`;
      logger[level](`${text}${times}`);
    },
  };
}

function slowLines(logger: Logger): MinuteLines<SlowCall> {
  return {
    once: (resource, { ms, label }) =>
      logger.warn(`Slow call of ${quoted(resource)}, ${ms} ms${labelled(label)}`),
    again: (resource, count, { ms, label }) => {
      const calls = count === 1 ? '1 more slow call' : `${count} more slow calls`;
      const which = count === 1 ? '' : 'the longest ';
      logger.warn(
        `${calls} of ${quoted(resource)} within a minute, ${which}${ms} ms${labelled(label)}`,
      );
    },
  };
}

function heldLines(logger: Logger): MinuteLines<HeldSlot> {
  return {
    once: (resource, { ms, label }) =>
      logger.warn(`A slot of ${quoted(resource)} has been held for ${ms} ms${labelled(label)}`),
    again: (resource, count, { ms, label }) => {
      const slots = count === 1 ? '1 more slot' : `${count} more slots`;
      logger.warn(
        `${slots} of ${quoted(resource)} held within a minute, for ${ms} ms${labelled(label)}`,
      );
    },
  };
}

const longer = <E extends { readonly ms: number }>(one: E, next: E): E =>
  next.ms > one.ms ? next : one;

/** Labels are texts of queries: of several lines, and with words of callers in them. */
function labelled(label: string | undefined): string {
  return label === undefined ? '' : `: ${quoted(label, Infinity)}`;
}

function hiddenLines(logger: Logger): MinuteLines<HiddenError> {
  return {
    once: (_, { route, error }) => {
      const text = `${route} failed, and its caller got another answer: ${saidBy(error)}`;
      logger.error(text, stackOf(error));
    },
    again: (_, count, { route, error }) => {
      const times = count === 1 ? 'once more' : `${count} times more`;
      logger.error(`${route} failed ${times} within a minute, the last one: ${saidBy(error)}`);
    },
  };
}

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

const nameOf = (error: unknown): string => (error instanceof Error ? error.name : typeof error);

const saidBy = (error: unknown): string => `${quoted(nameOf(error))} ${quotedError(error)}`;

/** Where it was thrown: without the message, which may hold anything. Refusals of ours need none. */
function stackOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || error instanceof RateLimitError) return undefined;
  const { stack, message } = error;
  if (typeof stack !== 'string') return undefined;
  const at = stack.indexOf(message);
  const below = stack.slice(at < 0 ? 0 : at + message.length);
  const frames = below.split('\n').slice(1, MOST_FRAMES + 1);
  return frames.map((frame) => withoutSteering(frame.slice(0, LONGEST_FRAME))).join('\n');
}
