import { type Contender } from '../contenders/contender.js';
import { type Traffic } from './traffic.js';

/**
 * Where every result goes. It can be reached from outside, so V8 can neither skip the work nor keep
 * the result object off the heap, which it would do to one that nobody sees.
 */
export const sink: { last: unknown } = { last: undefined };

/**
 * Asks for so many decisions; `inFlight` callers at a time, if the contender makes them wait.
 * Returns how many there were: each caller asks equally often, so there may be a few more.
 */
export async function drive(
  contender: Contender,
  traffic: Traffic,
  decisions: number,
  inFlight: number,
): Promise<number> {
  if (contender.answers === 'at once') {
    driveLoop(contender, traffic, decisions);
    return decisions;
  }
  const share = Math.ceil(decisions / inFlight);
  await Promise.all(Array.from({ length: inFlight }, () => driveClient(contender, traffic, share)));
  return share * inFlight;
}

function driveLoop(contender: Contender, traffic: Traffic, decisions: number): void {
  for (let n = 0; n < decisions; n++) sink.last = contender.decide(traffic.next());
}

/** One caller: asks, waits for its answer, asks for the next key. */
async function driveClient(
  contender: Contender,
  traffic: Traffic,
  decisions: number,
): Promise<void> {
  for (let n = 0; n < decisions; n++) {
    try {
      sink.last = await contender.decide(traffic.next());
    } catch (rejection) {
      // Some limiters say no by rejecting with their result. An error is still an error.
      if (rejection instanceof Error) throw rejection;
      sink.last = rejection;
    }
  }
}
