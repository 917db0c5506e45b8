import { Redis } from 'ioredis';
import { startSentinel, stopAll, until } from '../support/index.js';

afterAll(stopAll);

describe('startSentinel', () => {
  it('fails over to the replica when the primary is killed', async () => {
    const redis = await startSentinel();
    const client = new Redis({ sentinels: [...redis.sentinels], name: redis.name });
    client.on('error', () => undefined);
    expect(await client.set('key', 'before')).toBe('OK');

    await redis.primary.kill();
    await redis.failedOver();
    await until(() => client.set('key', 'after'), { what: 'a write after failover' });
    expect(client.stream.remotePort).toBe(redis.replica.port);
    client.disconnect();

    const { pid } = redis.replica;
    await redis.stop();
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });
});
