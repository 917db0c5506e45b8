import { AlgorithmCode, bucketLimit, windowLimit, type Limit } from '../../lib/algorithms/limit.js';

/** The figures of a limit of any algorithm, as tests draw them; each algorithm looks at its own. */
export interface LimitSpec {
  readonly algorithm: AlgorithmCode;
  readonly rate: number;
  readonly periodMs: number;
  readonly burst: number;
  readonly maxDelayMs: number;
  readonly subWindows: number;
}

export function compileLimit(spec: LimitSpec): Limit {
  const { algorithm, rate, periodMs, burst, maxDelayMs, subWindows } = spec;
  return algorithm === AlgorithmCode.SlidingWindow
    ? windowLimit(rate, periodMs, subWindows)
    : bucketLimit(algorithm, rate, periodMs, burst, maxDelayMs);
}
