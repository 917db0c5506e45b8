import CircuitBreaker from 'opossum';
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

/** Without percentiles, which sort all latencies of the window at every failure. */
export function createOpossum({ deadline = false }: ContenderOptions): Contender {
  const breaker = new CircuitBreaker(work, {
    timeout: deadline && DEADLINE_MS,
    capacity: CALLS,
    errorThresholdPercentage: 50,
    volumeThreshold: MINIMUM_CALLS,
    rollingCountTimeout: WINDOW_MS,
    resetTimeout: OPEN_MS,
    rollingPercentilesEnabled: false,
  });
  return protectedBy(
    (key) => breaker.fire(key),
    () => breaker.shutdown(),
  );
}
