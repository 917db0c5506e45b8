import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { reconnectDelayMs } from '../../lib/stores/redis/connection.js';
import { watchSilence } from '../../lib/stores/redis/silence.js';
import { ManualClock } from '../support/manual-clock.js';

/** A connection as far as the watch looks at it. */
class Connection extends EventEmitter {
  commandQueue = { length: 0 };
  stream = { bytesRead: 0, destroy: () => void (this.isOpen = false) };
  isOpen = true;
}

/** When a connection is given up that is made, and called, so many milliseconds after the watch began. */
function givenUpAfterMs({ madeAt, calledAt }: { madeAt: number; calledAt: number }): number {
  const clock = new ManualClock();
  const client = new Connection();
  let made = new Connection();
  // Until it is made there is another one, which nobody calls.
  const nodes = (): Connection[] => [made];
  const stop = watchSilence(Object.assign(client, { nodes }) as unknown as Redis, {
    every: (everyMs, task) => clock.every(everyMs, task),
    soon: (task) => clock.after(0, task),
  });
  let ms = 0;
  for (; made.isOpen && ms < 10_000; ms++) {
    if (ms === madeAt) made = new Connection();
    if (ms === calledAt) made.commandQueue.length = 1;
    clock.advance(1);
  }
  stop();
  return ms - calledAt;
}

describe('a connection that is silent with calls on it', () => {
  const PHASES = Array.from({ length: 300 }, (_, i) => 1000 + i);

  it('is given up after a second, and no earlier', () => {
    const silentMs = PHASES.map((calledAt) => givenUpAfterMs({ madeAt: 0, calledAt }));
    expect(Math.min(...silentMs)).toBeGreaterThanOrEqual(1000);
    expect(Math.max(...silentMs)).toBeLessThanOrEqual(1150);
  });

  it('is given up, and made anew, within two seconds, also if it was silent from the start', () => {
    const silentMs = PHASES.map((at) => givenUpAfterMs({ madeAt: at, calledAt: at }));
    expect(Math.min(...silentMs)).toBeGreaterThanOrEqual(1000);
    expect(Math.max(...silentMs) + reconnectDelayMs(100, () => 1)).toBeLessThan(1900);
  });
});
