import { type BeforeApplicationShutdown, type Provider } from '@nestjs/common';
import { SystemClock, type Clock } from '../common/clock.js';
import { Admission } from '../requests/admission.js';
import { OPTIONS, provide } from '../requests/module-tokens.js';
import { type TierResolver } from '../requests/tier.js';
import { OverloadLog } from './overload.log.js';
import { Overload } from './overload.js';
import { type OverloadInput } from './settings.js';

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

export const overloadProviders: Provider[] = [
  provide(
    OverloadLog,
    [OPTIONS],
    ({ clock }: OverloadModuleOptions) => new OverloadLog(clock ?? new SystemClock()),
  ),
  provide(
    Overload,
    [OPTIONS, OverloadLog],
    (
      { overload, tier, enabled, clock = new SystemClock() }: OverloadModuleOptions,
      log: OverloadLog,
    ) => new Overload({ options: overload, tier, clock, log, isEnabled: enabled }),
  ),
  { provide: Admission, useExisting: Overload },
  provide(OverloadShutdown, [Overload], (overload: Overload) => new OverloadShutdown(overload)),
];
