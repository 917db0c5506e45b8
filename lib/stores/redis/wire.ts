import { randomInt } from 'node:crypto';
import type { Cluster, Redis } from 'ioredis';
import { StrayReplyError } from '../../common/errors.js';
import { CallTimes } from '../call-times.js';

/** 48 bits, counted from anywhere: no two calls that can meet on a connection have the same number. */
let lastNumber = randomInt(2 ** 47);

export function newCallNumber(): number {
  return ++lastNumber;
}

/** The parts of an ioredis client beneath its commands, in all versions that we support. */
export interface ClientInternals {
  readonly commandQueue?: { readonly length: number };
  readonly stream?: {
    readonly bytesRead: number;
    destroy(reason?: Error): void;
    cork?(): void;
    uncork?(): void;
  };
}

/**
 * The replies of one client. Redis answers in the order in which it was asked, and nothing else ties a
 * reply to its call; so one that is lost or comes twice would be taken for the answer to the next call,
 * and its tokens be spent twice. Therefore every script ends its reply with the number of the call, and
 * a connection whose reply has another one is out of step: nothing of it is used any more.
 */
export class Wire {
  /** Replies that answered another call, or were none. */
  strayReplies = 0;
  /** Connections that were given up because they had gone silent. */
  silences = 0;
  /** The calls of all users of the client. */
  readonly calls = new CallTimes();
  /** True if we opened the client, and so may close its connections. */
  isOurs = false;

  /** Called before a call that others may go along with. One event and the library's own listeners, so no EventHub. */
  private readonly companions = new Set<() => void>();

  constructor(private readonly client: Redis | Cluster) {}

  /** Calls back within `together`, until the result is called; never on a cluster, where other keys are elsewhere. */
  onTogether(companion: () => void): () => void {
    if (!('nodes' in this.client)) this.companions.add(companion);
    return () => void this.companions.delete(companion);
  }

  /**
   * Sends a call, and in the same write whatever the companions send at once: waking Redis up costs it more than
   * most commands, and it reads all of a write in one go.
   */
  together<T>(send: () => T): T {
    return this.inOneWrite(() => {
      const sent = send();
      for (const companion of this.companions) companion();
      return sent;
    });
  }

  inOneWrite<T>(send: () => T): T {
    const { stream } = this.client as unknown as ClientInternals;
    stream?.cork?.();
    try {
      return send();
    } finally {
      stream?.uncork?.();
    }
  }

  /** The answer of a script, without the number of the call, which is its last argument. */
  async call(
    script: string,
    send: (number: number) => Promise<unknown>,
  ): Promise<readonly unknown[]> {
    const number = newCallNumber();
    const reply = await send(number);
    const figures: readonly unknown[] = Array.isArray(reply) ? reply : [];
    if (String(figures.at(-1)) === String(number)) return figures.slice(0, -1);
    throw this.stray(script);
  }

  /** To be thrown where a reply cannot belong to its call; the connection is given up at once. */
  stray(command: string): StrayReplyError {
    this.strayReplies++;
    const error = new StrayReplyError(command, this.isOurs);
    if (this.isOurs) for (const connection of connectionsOf(this.client)) reopen(connection, error);
    return error;
  }
}

const wires = new WeakMap<Redis | Cluster, Wire>();

/** One for all users of the client. */
export function wireOf(client: Redis | Cluster): Wire {
  let wire = wires.get(client);
  if (wire === undefined) wires.set(client, (wire = new Wire(client)));
  return wire;
}

/** Of a cluster all of them: the client does not show which one a reply came from. */
export function connectionsOf(client: Redis | Cluster): Redis[] {
  return 'nodes' in client ? client.nodes() : [client];
}

/** `disconnect` would wait for the other side, which may never answer. ioredis connects anew. */
export function reopen(connection: Redis, reason: Error): void {
  const { stream } = connection as unknown as ClientInternals;
  if (stream === undefined || stream === null) connection.disconnect(true);
  else stream.destroy(reason);
}
