import { spread } from '../../common/ids.js';

const JITTER = 0.2;
const PLACES = 4001;

/** From 0.8 to 1.2, and always the same for the same text: no draw that a test could not repeat. */
export function jitterOf(text: string): number {
  return 1 + JITTER * ((2 * spread(text, PLACES)) / (PLACES - 1) - 1);
}
