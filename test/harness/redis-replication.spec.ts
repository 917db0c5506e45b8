import { startPrimaryWithReplica, stopAll, until, withRedis } from '../support/index.js';

afterAll(stopAll);

describe('startPrimaryWithReplica', () => {
  it('replicates, and the promoted replica takes writes', async () => {
    const redis = await startPrimaryWithReplica();
    await withRedis(redis.primary.port, (client) => client.set('key', 'value'));
    await until(async () =>
      withRedis(redis.replica.port, async (client) => (await client.get('key')) === 'value'),
    );
    const write = () => withRedis(redis.replica.port, (client) => client.set('key', 'other'));
    await expect(write()).rejects.toThrow('READONLY');

    await redis.primary.kill();
    await redis.promote();
    expect(await write()).toBe('OK');

    const { pid } = redis.replica;
    await redis.stop();
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });
});
