import { type Bar } from './suite.js';
import { MOST_APART } from './twins.js';

// A figure that is not a number meets nothing: the comparisons below are false for NaN.

/** `mostApart`: the largest distance of twins, where the bar is nearer to 1 than the usual one. */
export function atMost(
  promise: string,
  found: number,
  bound: number,
  apart?: number,
  mostApart?: number,
): Bar {
  return barOf(promise, found, found <= bound, apart, mostApart);
}

export function atLeast(promise: string, found: number, bound: number, apart?: number): Bar {
  return barOf(promise, found, found >= bound, apart);
}

export function below(promise: string, found: number, bound: number, apart?: number): Bar {
  return barOf(promise, found, found < bound, apart);
}

export function exactly(promise: string, found: number, expected: number): Bar {
  return barOf(promise, found, found === expected);
}

/** `apart`: the distance of the case's twins, where it has any. Twins that differ too much leave the bar undecided. */
function barOf(
  promise: string,
  found: number,
  isMet: boolean,
  apart = NaN,
  mostApart = MOST_APART,
): Bar {
  if (apart > mostApart && !Number.isNaN(found)) {
    return { promise, found, verdict: 'undecided', apart };
  }
  return { promise, found, verdict: isMet ? 'ok' : 'missed' };
}

/**
 * The same bar of two contenders of one code. Both must say the same; and a machine that others had can make
 * figures worse and not better, so a bar that is missed there is not decided.
 */
export function byBoth(one: Bar, again: Bar, isDisturbed = false): Bar {
  const { promise } = one;
  const isDecided = one.verdict === again.verdict && !(one.verdict === 'missed' && isDisturbed);
  const found = (one.found + again.found) / 2;
  if (isDecided || Number.isNaN(found)) return { ...one, found };
  return { promise, found, verdict: 'undecided', apart: Math.abs(again.found / one.found - 1) };
}
