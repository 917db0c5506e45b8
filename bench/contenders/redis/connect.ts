import { once } from 'node:events';
import { Redis, type RedisOptions } from 'ioredis';
import { type ContenderOptions } from '../contender.js';

/** A connection of the contender's own, ready to use. */
export async function connect(
  { redisUrl }: ContenderOptions,
  redisOptions: RedisOptions = {},
): Promise<Redis> {
  if (redisUrl === undefined) throw new Error('this contender needs options.redisUrl');
  const client = new Redis(redisUrl, redisOptions);
  await once(client, 'ready');
  return client;
}
