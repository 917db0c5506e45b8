import { type RateLimitOverrides } from '../rate-limit.options.js';
import { RATE_LIMIT_OVERRIDES } from '../rate-limit.providers.js';
import { ManualClock } from './manual-clock.js';

export { type RateLimitOverrides } from '../rate-limit.options.js';

/** The builder that `Test.createTestingModule` of `@nestjs/testing` gives, as far as it is used here. */
export interface OverridableModule {
  overrideProvider(token: unknown): { useValue(value: unknown): unknown };
}

/**
 * Makes the limits of an application deterministic: they live in memory, and their time is a clock
 * that the test moves. Policies, decorators and keys stay what they are,
 * but for the fields that `policies` names.
 *
 *     const clock = new ManualClock();
 *     const builder = Test.createTestingModule({ imports: [AppModule] });
 *     const app = (await overrideRateLimits(builder, { clock }).compile()).createNestApplication();
 */
export function overrideRateLimits<T extends OverridableModule>(
  builder: T,
  overrides: RateLimitOverrides = {},
): T {
  const { clock = new ManualClock(), store = 'memory', ...others } = overrides;
  builder.overrideProvider(RATE_LIMIT_OVERRIDES).useValue({ ...others, clock, store });
  return builder;
}
