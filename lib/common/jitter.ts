import { spread } from './ids.js';

/** Waits differ by up to this part, so that processes which fell into step do not stay in it. */
export const JITTER = 0.2;

const PLACES = 4001;

/** Up to a fifth more; `random` is from 0 to 1. */
export function jitterUp(wait: number, random: number): number {
  return wait * (1 + random * JITTER);
}

/** From a fifth less to a fifth more; `random` is from 0 to 1. */
export function jitterAround(wait: number, random: number): number {
  return wait * (1 + JITTER * (2 * random - 1));
}

/** A factor from 0.8 to 1.2, always the same for the same text: no draw that a test could not repeat. */
export function jitterOf(text: string): number {
  return jitterAround(1, spread(text, PLACES) / (PLACES - 1));
}
