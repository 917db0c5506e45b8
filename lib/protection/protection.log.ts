import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import { type Clock } from '../common/clock.js';
import { HiddenErrors } from '../common/hidden-errors.js';
import { levelLines, MinuteLog, type LevelLine, type MinuteLines } from '../common/minute-log.js';
import { quoted } from '../common/quoted.js';
import { type HeldSlot, type SlowCall } from './events.js';
import { type Protection } from './protection.js';

/** Slow calls, held slots, breakers that change, and errors that a fallback hides: a few lines a minute for each. */
export class ProtectionLog implements OnApplicationShutdown {
  private readonly slow: MinuteLog<SlowCall>;
  private readonly held: MinuteLog<HeldSlot>;
  private readonly breakers: MinuteLog<LevelLine>;
  private readonly hidden: HiddenErrors;

  constructor(clock: Pick<Clock, 'every'>) {
    const logger = new Logger('Protection');
    this.slow = new MinuteLog(clock, slowLines(logger), longer);
    this.held = new MinuteLog(clock, heldLines(logger), longer);
    this.breakers = new MinuteLog(clock, levelLines(logger));
    this.hidden = new HiddenErrors(clock, new Logger('RateLimitModule'));
  }

  listenTo(protection: Protection): void {
    protection.on('slow', (call) => this.slow.add(call.resource, call));
    protection.on('held', (slot) => this.held.add(slot.resource, slot));
    protection.on('fallback', ({ resource, error }) => {
      this.hidden.add(`Resource ${quoted(resource)}`, error);
    });
    protection.on('breaker', ({ resource, from, to, observed, window }) => {
      const why = window && ` (${window.failures} failed, ${window.slow} slow of ${window.calls})`;
      const would = observed ? ' (observed only)' : '';
      const text = `Breaker of ${quoted(resource)}: ${from} → ${to}${why ?? ''}${would}`;
      this.breakers.add(`${resource} ${from} ${to}`, { level: 'warn', text });
    });
  }

  onApplicationShutdown(): void {
    for (const log of [this.slow, this.held, this.breakers, this.hidden]) log.close();
  }
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

/** Labels are texts of queries: of several lines, and with values of callers in them. */
function labelled(label: string | undefined): string {
  return label === undefined ? '' : `: ${quoted(label, Infinity)}`;
}
