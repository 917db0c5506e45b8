import { type Bar } from './suite.js';

// A figure that is not a number meets nothing: the comparisons below are false for NaN.

export function atMost(promise: string, found: number, bound: number): Bar {
  return { promise, found, met: found <= bound };
}

export function atLeast(promise: string, found: number, bound: number): Bar {
  return { promise, found, met: found >= bound };
}

export function below(promise: string, found: number, bound: number): Bar {
  return { promise, found, met: found < bound };
}

export function exactly(promise: string, found: number, expected: number): Bar {
  return { promise, found, met: found === expected };
}
