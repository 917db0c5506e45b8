import { type BeforeApplicationShutdown, type Provider } from '@nestjs/common';
import { SystemClock, type Clock } from '../common/clock.js';
import { RateLimiter } from '../limiter/rate-limiter.js';
import { Admission } from '../requests/admission.js';
import { OPTIONS, provide } from '../requests/module-tokens.js';
import { type TierResolver } from '../requests/tier.js';
import { OverloadLog } from './overload.log.js';
import { Overload } from './overload.js';
import { type OverloadInput } from './settings.js';
import { LoadSignals } from './signals.js';

/** The module's options, as far as overload reads them. */
interface OverloadModuleOptions {
  readonly overload?: OverloadInput;
  readonly tier?: TierResolver;
  readonly enabled: boolean;
  readonly clock?: Clock;
}

/** Lets go of what waits before Nest closes the server. */
class OverloadShutdown implements BeforeApplicationShutdown {
  constructor(private readonly overload: Overload) {}

  beforeApplicationShutdown(): void {
    this.overload.close();
  }
}

/** Measures the load for policies that shrink by it, and for whoever listens. */
function loadSignalsOf(
  overload: Overload,
  limiter: RateLimiter,
  clock: Clock,
  probes: OverloadInput['probes'],
): LoadSignals {
  return new LoadSignals({
    clock,
    inFlight: () => overload.line.inFlight,
    ...(probes !== undefined && { probes }),
    isNeeded: () => limiter.isAdaptive || overload.hasListeners('load'),
    told: (sample) => overload.emit('load', sample),
    factor: (factor) => limiter.load(factor),
  });
}

export const overloadProviders: Provider[] = [
  provide(
    OverloadLog,
    [OPTIONS],
    ({ clock }: OverloadModuleOptions) => new OverloadLog(clock ?? new SystemClock()),
  ),
  provide(
    Overload,
    [OPTIONS, OverloadLog, RateLimiter],
    (options: OverloadModuleOptions, log: OverloadLog, limiter: RateLimiter) => {
      const { overload, tier, enabled, clock = new SystemClock() } = options;
      const made = new Overload({ options: overload, tier, clock, log, isEnabled: enabled });
      if (enabled) made.follow(loadSignalsOf(made, limiter, clock, overload?.probes));
      return made;
    },
  ),
  { provide: Admission, useExisting: Overload },
  provide(OverloadShutdown, [Overload], (overload: Overload) => new OverloadShutdown(overload)),
];
