import { EventEmitter } from 'node:events';
import type { Cluster, Redis } from 'ioredis';
import { keepMasters } from '../../lib/stores/redis/cluster-masters.js';
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

/** A client of a cluster, as far as its nodes go. */
class ClusterClient extends EventEmitter {
  status = 'ready';
  reads = 0;
  private readonly masters = new Set<Master>();

  nodes(): Master[] {
    return [...this.masters];
  }

  refreshSlotsCache(): void {
    this.reads++;
  }

  add(): Master {
    const made = new Master();
    this.masters.add(made);
    this.emit('+node', made);
    return made;
  }

  lose(master: Master): void {
    this.masters.delete(master);
    this.emit('-node', master);
  }
}

class Master extends EventEmitter {
  status = 'wait';

  connect(): Promise<void> {
    this.status = 'connecting';
    return Promise.resolve();
  }
}

describe('the connections to the masters of a cluster', () => {
  function keep(isOurs: boolean) {
    const clock = new ManualClock();
    const client = new ClusterClient();
    const told = { ready: 0 };
    const stop = keepMasters(client as unknown as Cluster, isOurs, clock, () => told.ready++);
    return { clock, client, told, stop };
  }

  it('are made anew soon after one is lost, and who waits for that is told', () => {
    const { clock, client, told } = keep(true);
    client.lose(client.add());
    client.lose(client.add());
    expect(client.reads).toBe(0);
    clock.advance(250);
    expect(client.reads).toBe(1);
    const again = client.add();
    expect(again.status).toBe('connecting');
    expect(told.ready).toBe(0);
    again.emit('ready');
    expect(told.ready).toBe(1);
  });

  it('are not looked for while there is no cluster, nor any more at the end', () => {
    const { clock, client, stop } = keep(true);
    client.status = 'reconnecting';
    client.lose(client.add());
    clock.advance(250);
    client.status = 'ready';
    client.lose(client.add());
    stop();
    clock.advance(1000);
    client.lose(client.add());
    expect(client.reads).toBe(0);
    expect(clock.pending).toBe(0);
  });

  it('are looked for by the client where it is the user’s', () => {
    const { clock, client } = keep(false);
    client.lose(client.add());
    clock.advance(1000);
    expect(client.reads).toBe(0);
  });
});
