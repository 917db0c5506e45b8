import { setImmediate as nextTurn } from 'node:timers/promises';
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
  if (contender.answers === 'at once or later') {
    return driveTurns(contender, traffic, decisions, inFlight);
  }
  const share = Math.ceil(decisions / inFlight);
  await Promise.all(Array.from({ length: inFlight }, () => driveClient(contender, traffic, share)));
  return share * inFlight;
}

function driveLoop(contender: Contender, traffic: Traffic, decisions: number): void {
  for (let n = 0; n < decisions; n++) sink.last = contender.decide(traffic.next());
}

/**
 * As many callers, one question each in a turn of the event loop, as in a server that is given its
 * answers at once: it turns to the network between two requests of a connection. The next turn
 * waits for the answers that come later.
 */
async function driveTurns(
  contender: Contender,
  traffic: Traffic,
  decisions: number,
  inFlight: number,
): Promise<number> {
  const turns = Math.ceil(decisions / inFlight);
  const later: Promise<unknown>[] = [];
  for (let turn = 0; turn < turns; turn++) {
    for (let caller = 0; caller < inFlight; caller++) {
      const answer = contender.decide(traffic.next());
      if (answer instanceof Promise) later.push(answer);
      else sink.last = answer;
    }
    if (later.length > 0) sink.last = (await Promise.all(later.splice(0))).pop();
    await nextTurn();
  }
  return turns * inFlight;
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
