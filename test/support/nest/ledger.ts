import { Inject, Injectable } from '@nestjs/common';
import {
  Protection,
  RateLimitModule,
  type RateLimitModuleInput,
  type UnavailableBody,
} from 'nestjs-weir';
import { ManualClock } from '../manual-clock.js';

const hang = (): Promise<never> => new Promise(() => {});

/** Has a resource for everything that protection can say; all have the secret in their names. */
@Injectable()
export class Ledger {
  constructor(
    @Inject(Protection) private readonly protection: Protection,
    @Inject(ManualClock) private readonly clock: ManualClock,
  ) {}

  ask(trouble: string): Promise<unknown> {
    return this.troubles[trouble as Trouble]();
  }

  private readonly troubles = {
    open: () => this.protection.run('secret-open', hang),
    full: () => {
      this.protection.run('secret-full', hang).catch(() => undefined);
      return this.protection.run('secret-full', hang);
    },
    limited: async () => {
      for (;;) await this.protection.run('secret-limited', () => Promise.resolve());
    },
    late: () => {
      const ended = this.protection.run('secret-late', hang);
      this.clock.advance(100);
      return ended;
    },
    big: () => this.protection.run('secret-big', hang, { value: 'a long text' }),
    unknown: () => this.protection.run('secret-unknown', hang),
    none: () => Promise.resolve({ text: 'fine' }),
  };
}

export type Trouble = 'open' | 'full' | 'limited' | 'late' | 'big' | 'unknown' | 'none';

export const SECRET = 'secret';

/** How those end that are not the fault of the program, in what all transports have in common. */
export const TOLD: Readonly<Record<'open' | 'full' | 'limited' | 'late', UnavailableBody>> = {
  open: {
    status: 'error',
    statusCode: 503,
    code: 'BREAKER_OPEN',
    message: 'The service cannot answer this at the moment',
    retryAfterMs: 4200,
  },
  full: {
    status: 'error',
    statusCode: 503,
    code: 'BULKHEAD_REJECTED',
    message: 'The service cannot answer this at the moment',
  },
  limited: {
    status: 'error',
    statusCode: 503,
    code: 'PROTECTION_REJECTED',
    message: 'The service cannot answer this at the moment',
    retryAfterMs: 30_000,
  },
  late: {
    status: 'error',
    statusCode: 504,
    code: 'DEADLINE_EXCEEDED',
    message: 'The service could not answer in time',
  },
};

export const TROUBLES = Object.keys(TOLD) as (keyof typeof TOLD)[];

/** The modules and providers of an application that keeps a ledger. */
export function ledgerModules(options: RateLimitModuleInput = {}) {
  const clock = new ManualClock();
  const protection = {
    'secret-open': { breaker: { mode: 'forced', openFor: 4200 } },
    'secret-full': { bulkhead: { maxInFlight: 1, maxQueue: 0 } },
    'secret-limited': { rate: 'entries' },
    'secret-late': { deadline: 50 },
    'secret-big': { maxValueBytes: 1 },
  } as const;
  const policies = { entries: { rate: 2, period: '1m' } } as const;
  return {
    imports: [RateLimitModule.forRoot({ clock, protection, policies, ...options })],
    providers: [Ledger, { provide: ManualClock, useValue: clock }],
  };
}
