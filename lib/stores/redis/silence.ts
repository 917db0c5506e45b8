import type { Cluster, Redis } from 'ioredis';
import { type Cancel, type Clock } from '../../common/clock.js';
import { StoreUnavailableError } from '../../common/errors.js';
import { connectionsOf, reopen, wireOf, type ClientInternals } from './wire.js';

const LOOK_MS = 125;
/**
 * A call may be sent just before a look, so the first one does not count: the silence has lasted for a
 * second. A connection that was made just after a look is given up a quarter of a second later than that.
 */
const MOST_LOOKS = 1 + 1000 / LOOK_MS;

/**
 * Gives a connection up that is silent for a second while calls wait on it, so that ioredis makes
 * another one. A connection whose other side is gone without a word (a host that lost its power, a
 * firewall that forgot it) would else stay for a quarter of an hour, or for ever behind a proxy that
 * still confirms what it receives. Connections that are being set up count as well.
 *
 * ioredis has `socketTimeout` for this, but its timer runs before the sockets are read: after a stall
 * of this process it closes connections whose replies are here. Between two looks the sockets are
 * read, so that a stall, however long, is one look.
 */
export function watchSilence(
  client: Redis | Cluster,
  clock: Pick<Clock, 'every' | 'soon'>,
): Cancel {
  const watch = new SilenceWatch(client);
  let cancelLook: Cancel | undefined;
  const cancel = clock.every(LOOK_MS, () => {
    cancelLook ??= clock.soon(() => {
      cancelLook = undefined;
      watch.look();
    });
  });
  return () => {
    cancel();
    cancelLook?.();
  };
}

class SilenceWatch {
  private found = new Map<Redis, { readonly bytes: number; readonly looks: number }>();

  constructor(private readonly client: Redis | Cluster) {}

  look(): void {
    const before = this.found;
    this.found = new Map();
    for (const connection of connectionsOf(this.client)) {
      const { commandQueue, stream } = connection as unknown as ClientInternals;
      const bytes = stream?.bytesRead ?? 0;
      const last = before.get(connection);
      const isSilent = last?.bytes === bytes && (commandQueue?.length ?? 0) > 0;
      const looks = isSilent ? last.looks + 1 : 0;
      if (looks < MOST_LOOKS) this.found.set(connection, { bytes, looks });
      else this.giveUp(connection);
    }
  }

  private giveUp(connection: Redis): void {
    wireOf(this.client).silences++;
    reopen(connection, new StoreUnavailableError('silent for a second, with calls on it'));
  }
}
