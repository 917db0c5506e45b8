import { Redis } from 'ioredis';

/** Runs `work` on a connection of its own that neither retries nor reconnects. */
export async function withRedis<T>(port: number, work: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis({
    host: '127.0.0.1',
    port,
    lazyConnect: true,
    connectTimeout: 2_000,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // Without a listener ioredis prints each refused connection; connect() rejects with it anyway.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await work(client);
  } finally {
    // On a connection that was refused disconnect() would only leave a timer of two seconds behind.
    if (client.status !== 'close' && client.status !== 'end') client.disconnect();
  }
}

/** One field of INFO, or undefined where the server does not report it. */
export const infoField = (info: string, field: string): string | undefined =>
  new RegExp(`^${field}:(.*?)\\r?$`, 'm').exec(info)?.[1];
