import { InvalidArgumentError } from '../common/errors.js';
import { plainObject, rejectUnknown, wholeAbove0 } from '../common/validate.js';

/** The connections that a database allows, and their users. */
export interface ConnectionFigures {
  /** Connections that one database server, or one shard, allows. */
  readonly maxConnections: number;
  /** Of these for others: migrations, operators, backups. Default: none. */
  readonly reserved?: number;
  /** Shards that a service talks to. Default: one. */
  readonly shards?: number;
  /** Processes of the service. Default: one. */
  readonly instances?: number;
}

/** The connections of one process, of one shard, and in all. */
export interface ConnectionShare {
  /** For the service as a whole, of one shard. */
  readonly perShard: number;
  /** For the service as a whole, of all shards. */
  readonly inAll: number;
  /** For one process, of one shard: its `bulkhead.maxInFlight`, and the size of its pool. */
  readonly perInstance: number;
}

const KNOWN: readonly (keyof ConnectionFigures)[] = [
  ...(['maxConnections', 'reserved', 'shards', 'instances'] as const),
];
const AT = 'connectionShare';

/** How many connections to a database a service may have, and each of its processes. */
export function connectionShare(figures: ConnectionFigures): ConnectionShare {
  plainObject(AT, figures, 'an object');
  rejectUnknown(AT, figures, KNOWN);
  const { maxConnections, reserved = 0, shards = 1, instances = 1 } = figures;
  wholeAbove0(`${AT}.maxConnections`, maxConnections);
  wholeAbove0(`${AT}.shards`, shards);
  wholeAbove0(`${AT}.instances`, instances);
  if (!Number.isInteger(reserved) || reserved < 0 || reserved >= maxConnections) {
    const what = `a whole number from 0 on, less than maxConnections, ${maxConnections}`;
    throw new InvalidArgumentError(`${AT}.reserved`, reserved, what);
  }
  const perShard = maxConnections - reserved;
  if (instances > perShard) {
    const what = `at most ${perShard}: there are no more connections`;
    throw new InvalidArgumentError(`${AT}.instances`, instances, what);
  }
  return { perShard, inAll: perShard * shards, perInstance: Math.floor(perShard / instances) };
}
