import {
  bulkhead,
  circuitBreaker,
  ConsecutiveBreaker,
  handleAll,
  SamplingBreaker,
  timeout,
  TimeoutStrategy,
  wrap,
  type IBreaker,
} from 'cockatiel';
import { type Contender, type ContenderOptions } from '../contender.js';
import {
  CALLS,
  DEADLINE_MS,
  MINIMUM_CALLS,
  OPEN_MS,
  protectedBy,
  WINDOW_MS,
  work,
} from './work.js';

function create(
  { deadline = false }: ContenderOptions,
  breaker: IBreaker,
  strategy: TimeoutStrategy,
): Contender {
  const policies = [
    circuitBreaker(handleAll, { halfOpenAfter: OPEN_MS, breaker }),
    bulkhead(CALLS, CALLS),
  ] as const;
  const policy = deadline ? wrap(timeout(DEADLINE_MS, strategy), ...policies) : wrap(...policies);
  return protectedBy((key) => policy.execute(() => work(key)));
}

/** The parts that do the same: a rate over a time, and a caller that is answered when the time is over. */
export function createCockatiel(options: ContenderOptions): Contender {
  const duration = WINDOW_MS;
  const minimumRps = MINIMUM_CALLS / (WINDOW_MS / 1000);
  const breaker = new SamplingBreaker({ threshold: 0.5, duration, minimumRps });
  return create(options, breaker, TimeoutStrategy.Aggressive);
}

/** The cheapest parts that it has: failures in a row, and a timeout that only asks the work to stop. */
export function createCheapest(options: ContenderOptions): Contender {
  return create(options, new ConsecutiveBreaker(MINIMUM_CALLS), TimeoutStrategy.Cooperative);
}
