import { Redis } from 'ioredis';
import {
  type RedisProcess,
  type TcpProxy,
  startProxy,
  startRedis,
  stopAll,
  until,
} from '../support/index.js';
import { RawClient } from './raw-client.js';

let redis: RedisProcess;
let proxy: TcpProxy;
let client: RawClient;

beforeAll(async () => {
  redis = await startRedis();
});
beforeEach(async () => {
  proxy = await startProxy({ targetPort: redis.port });
  client = await RawClient.connect(proxy.port);
});
afterEach(async () => {
  client.close();
  await proxy.close();
});
afterAll(stopAll);

describe('startProxy', () => {
  it('passes commands and replies on unchanged', async () => {
    const ioredis = new Redis(proxy.url);
    await ioredis.set('key', 'value');
    expect(await ioredis.get('key')).toBe('value');
    ioredis.disconnect();
    expect(proxy.stats).toMatchObject({ connections: 2 });
    expect(proxy.stats.bytesToServer).toBeGreaterThan(0);
    expect(proxy.stats.bytesToClient).toBeGreaterThan(0);
  });

  it('delays replies without changing their order', async () => {
    proxy.delayReplies(60);
    const startedMs = performance.now();
    client.send('ECHO first');
    await until(() => proxy.stats.replies === 1);
    proxy.delayReplies(0);
    client.send('ECHO second');
    await until(() => client.received.includes('second'));
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(60);
    expect(client.received).toBe('$5\r\nfirst\r\n$6\r\nsecond\r\n');
  });

  it('holds replies while the server goes on hearing commands', async () => {
    proxy.holdReplies();
    client.send('INCR held');
    client.send('INCR held');
    await until(() => proxy.stats.replies === 2);
    expect(client.received).toBe('');
    proxy.releaseReplies();
    await until(() => client.received === ':1\r\n:2\r\n');
  });

  it('cuts all connections, refuses new ones, and comes back on the same port', async () => {
    await proxy.cut();
    await until(() => client.closed);
    await expect(RawClient.connect(proxy.port)).rejects.toThrow('ECONNREFUSED');
    await proxy.restore();
    const again = await RawClient.connect(proxy.port);
    again.send('PING');
    await until(() => again.received === '+PONG\r\n');
    again.close();
  });

  it('leads to another server from the next connection on', async () => {
    const other = await startRedis();
    client.send('SET whose first');
    await until(() => client.received === '+OK\r\n');
    proxy.redirect(other.port);
    client.send('GET whose');
    await until(() => client.received.endsWith('first\r\n'));
    const later = await RawClient.connect(proxy.port);
    later.send('GET whose');
    await until(() => later.received === '$-1\r\n');
    later.close();
    await other.stop();
  });

  it('doubles replies, whole ones only', async () => {
    proxy.doubleReplies(true);
    client.send('ECHO one');
    client.send('PING');
    await until(() => client.received === '$3\r\none\r\n$3\r\none\r\n+PONG\r\n+PONG\r\n');
    proxy.doubleReplies(false);
    client.send('ECHO two');
    await until(() => client.received.endsWith('+PONG\r\n$3\r\ntwo\r\n'));
  });

  it('drops one reply of a command that has run', async () => {
    proxy.dropNextReply();
    client.send('INCR dropped');
    client.send('INCR dropped');
    await until(() => client.received === ':2\r\n');
    expect(client.closed).toBe(false);
  });

  it('loses a reply together with its connection', async () => {
    proxy.cutAtNextReply();
    client.send('INCR lost');
    await until(() => client.closed);
    expect(client.received).toBe('');
    const after = await RawClient.connect(proxy.port);
    after.send('INCR lost');
    await until(() => after.received === ':2\r\n');
    after.close();
  });

  it('ends the connection when the server ends it, after what was still under way', async () => {
    proxy.delayReplies(30);
    client.send('QUIT');
    await until(() => client.closed);
    expect(client.received).toBe('+OK\r\n');
    await until(() => proxy.stats.openConnections === 0);
  });

  it('leaves nothing open after close', async () => {
    await proxy.close();
    await until(() => client.closed);
    expect(proxy.stats.openConnections).toBe(0);
    await proxy.close();
  });
});
