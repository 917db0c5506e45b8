import { Protection } from 'nestjs-weir';
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

/** The public call, with everything that is on by default: counts, and the warning of held slots. */
export function createWeir({ deadline = false }: ContenderOptions): Contender {
  const protection = new Protection({
    db: {
      deadline: deadline && DEADLINE_MS,
      bulkhead: { maxInFlight: CALLS, maxQueue: CALLS },
      breaker: { window: WINDOW_MS, minimumCalls: MINIMUM_CALLS, openFor: OPEN_MS },
    },
  });
  return protectedBy((key) => protection.run('db', () => work(key)));
}
