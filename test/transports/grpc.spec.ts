import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { startProxy, startRedis, stopAll } from '../support/index.js';
import { until } from '../support/until.js';
import { readStatus } from '../support/nest/google-rpc.js';
import { type GrpcClients, type Outcome } from '../support/nest/grpc-clients.js';
import { GrpcServer } from '../support/nest/grpc-servers.js';
import { NEST_MAJORS } from '../support/nest/nest-majors.js';

// The server is a process of its own, on the built package and on either Nest: what ends a process
// must not be the one that looks on.
beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
afterAll(stopAll);

const OK = 0;
const CANCELLED = 1;
const INVALID_ARGUMENT = 3;
const PERMISSION_DENIED = 7;
const RESOURCE_EXHAUSTED = 8;
const UNAVAILABLE = 14;

describe.each(NEST_MAJORS)('gRPC on Nest %i', (major) => {
  describe('in a microservice', () => {
    let server: GrpcServer;
    let clients: GrpcClients;

    beforeAll(async () => {
      server = await GrpcServer.start(major, { kind: 'memory' });
      ({ clients } = server);
    });
    afterEach(() => advance(600_000));
    afterAll(() => server.stop());

    /** Moves the server's clock, and tells how many timers are left. */
    async function advance(ms: number): Promise<number> {
      const { replies } = await clients.call('Shop.Advance', [{ number: ms }]);
      return Number(replies[0]?.text);
    }

    it('denies with status 8, and says when to come back in three ways', async () => {
      const texts = [];
      for (let i = 0; i < 2; i++) texts.push((await clients.call('Shop.Named')).replies[0]?.text);
      expect(texts).toEqual(['1 left', '0 left']);
      const denied = await clients.call('Shop.Named');
      expect(denied).toMatchObject({ code: RESOURCE_EXHAUSTED, details: 'Too many requests' });
      // The caller waits for 20 s at most, so another attempt of the same call is in vain.
      expect(trailersOf(denied)).toMatchObject({
        'grpc-retry-pushback-ms': '-1',
        'retry-after-ms': '30000',
      });
      expect(detailsOf(denied)).toEqual({
        code: RESOURCE_EXHAUSTED,
        message: 'Too many requests',
        details: {
          RetryInfo: { retryDelay: { seconds: 30 } },
          QuotaFailure: {
            violations: [{ subject: 'policy:two', description: 'Too many requests' }],
          },
          ErrorInfo: {
            reason: 'RATE_LIMITED',
            domain: 'nestjs-weir',
            metadata: { policy: 'two' },
          },
        },
      });
      expect([...denied.headers.get('ratelimit')]).toEqual([]);
    });

    it('pushes back by as much as it takes, if the caller has so much time', async () => {
      await clients.codes(2, 'Shop.Named');
      await advance(29_000);
      const denied = await clients.call('Shop.Named');
      expect(trailersOf(denied)).toMatchObject({
        'grpc-retry-pushback-ms': '1000',
        'retry-after-ms': '1000',
      });
    });

    it.each([
      ['a server stream', 'Shop.List', [{ number: 3 }], ['0', '1', '2']],
      ['a duplex stream', 'Shop.Chat', [{ name: 'a' }, { name: 'b' }], ['a', 'b']],
      ['a bare duplex stream', 'Shop.BareChat', [{ name: 'a' }, { name: 'b' }], ['a', 'b']],
    ])('asks once for %s, whatever its length', async (_, what, messages, texts) => {
      const passed = await clients.call(what, messages);
      expect([passed.code, passed.replies.map(({ text }) => text)]).toEqual([OK, texts]);
      const denied = await clients.call(what, messages);
      expect([denied.code, denied.replies]).toEqual([RESOURCE_EXHAUSTED, []]);
      expect(trailersOf(denied)['retry-after-ms']).toBe('60000');
    });

    it.each([
      ['a client stream', 'Shop.Collect'],
      ['a bare client stream', 'Shop.BareCollect'],
    ])('asks once for %s, whatever its length', async (_, what) => {
      const messages = [1, 2, 3].map((number) => ({ number }));
      const passed = await clients.call(what, messages);
      expect([passed.code, passed.replies[0]?.numbers]).toEqual([OK, [1, 2, 3]]);
      const denied = await clients.call(what, messages);
      expect([denied.code, denied.replies]).toEqual([RESOURCE_EXHAUSTED, []]);
      expect(trailersOf(denied)['retry-after-ms']).toBe('60000');
    });

    it('tells inline policies apart by the method, though Nest has wrapped it, and does not name it', async () => {
      const names = [];
      for (const what of ['Shop.Collect', 'Shop.Chat', 'Shop.BareChat', 'Shop.List']) {
        await clients.call(what);
        names.push(policyOf(await clients.call(what)));
      }
      expect(new Set(names).size).toBe(4);
      for (const name of names) expect(name).toMatch(/^limit-[0-9a-f]{8}$/);
    });

    it('reads keys from metadata, in any case', async () => {
      const codes = [];
      for (const tenant of ['a', 'b', 'a', undefined, undefined]) {
        const headers: Record<string, string> = tenant === undefined ? {} : { 'x-tenant': tenant };
        codes.push((await clients.call('Shop.ByKey', [{}], headers)).code);
      }
      expect(codes).toEqual([OK, OK, RESOURCE_EXHAUSTED, OK, RESOURCE_EXHAUSTED]);
    });

    it('reads keys from the message, 64-bit numbers too', async () => {
      const codes = [];
      for (const [sku, name] of [
        ['9007199254740993', 'x'],
        ['9007199254740992', 'x'],
        ['9007199254740993', 'y'],
        ['9007199254740993', 'x'],
      ]) {
        codes.push((await clients.call('Shop.BySku', [{ sku, name }])).code);
      }
      expect(codes).toEqual([OK, OK, OK, RESOURCE_EXHAUSTED]);
    });

    it('knows users after authentication, and callers without a name by their address', async () => {
      const codes = [];
      for (const user of ['ann', 'bob', 'ann', undefined, undefined]) {
        const headers: Record<string, string> = user === undefined ? {} : { 'x-user': user };
        codes.push((await clients.call('Shop.ByUser', [{}], headers)).code);
      }
      expect(codes).toEqual([OK, OK, RESOURCE_EXHAUSTED, OK, RESOURCE_EXHAUSTED]);
    });

    it('knows addresses only before authentication', async () => {
      const codes = [];
      for (const user of ['ann', 'bob']) {
        codes.push((await clients.call('Shop.ByUserTooEarly', [{}], { 'x-user': user })).code);
      }
      expect(codes).toEqual([OK, RESOURCE_EXHAUSTED]);
    });

    it('holds back what a shaper delays, and takes it back from callers that leave', async () => {
      expect((await clients.call('Shop.Shaped')).code).toBe(OK);
      const timers = await advance(0);
      const left = clients.start('Shop.Shaped');
      await until(async () => (await advance(0)) > timers);
      left.call.cancel();
      expect((await left.outcome).code).toBe(CANCELLED);
      await until(async () => (await advance(0)) === timers);
      // The slot is free again: the next one waits for 10 s, and not for 20.
      const next = clients.start('Shop.Shaped');
      await until(async () => (await advance(0)) > timers);
      await advance(10_000);
      expect((await next.outcome).code).toBe(OK);
    });

    it('leaves other methods alone', async () => {
      expect(await clients.codes(5, 'Shop.Free')).toEqual([OK, OK, OK, OK, OK]);
    });

    it('answers a denied bare stream a thousand times, and lives', async () => {
      await clients.call('Shop.BareChat');
      await clients.call('Shop.BareCollect');
      const writtenBefore = server.written;
      const codes = new Set<number>();
      for (let round = 0; round < 10; round++) {
        const calls = Array.from({ length: 100 }, (_, i) =>
          clients.call(i % 2 === 0 ? 'Shop.BareChat' : 'Shop.BareCollect'),
        );
        for (const { code } of await Promise.all(calls)) codes.add(code);
      }
      expect([...codes]).toEqual([RESOURCE_EXHAUSTED]);
      expect(await clients.codes(1, 'Shop.Free')).toEqual([OK]);
      expect(server.alive).toBe(true);
      expect(server.written).toBe(writtenBefore);
    });

    it('lives through errors of others on a bare stream: own words, failures, callers that leave', async () => {
      expect(await clients.codes(1, 'Shop.BareOwnWords')).toEqual([OK]);
      const own = await clients.call('Shop.BareOwnWords');
      expect(own).toMatchObject({ code: PERMISSION_DENIED, details: 'in words of its own' });
      const broken = await clients.call('Shop.BareBroken');
      expect(broken).toMatchObject({ code: INVALID_ARGUMENT });
      expect(detailsOf(broken)).toMatchObject({
        details: { ErrorInfo: { reason: 'COST_OUT_OF_RANGE' } },
      });
      // The log is another process's: its words may come after its answer.
      await until(() => server.written.includes('no such price'), {
        what: 'the log of the failure',
      });
      // All earlier waits are over, so that only this call's timer is counted.
      await advance(3_600_000);
      await clients.call('Shop.BareShaped');
      const timers = await advance(0);
      const left = clients.start('Shop.BareShaped');
      await until(async () => (await advance(0)) > timers);
      left.call.cancel();
      await until(async () => (await advance(0)) <= timers);
      expect(await clients.codes(1, 'Shop.Free')).toEqual([OK]);
      expect(server.alive).toBe(true);
    });

    it('limits streams message by message where it is asked to', async () => {
      const messages = [1, 2, 3, 4, 5].map((number) => ({ number }));
      const dropped = await clients.call('Shop.Drops', messages);
      expect(dropped.code).toBe(OK);
      expect(dropped.replies.map(({ text }) => text)).toEqual(['1', '2', '3']);
      const mixed = [...messages, { number: 6 }].map(({ number }) => ({
        number,
        name: number === 2 ? 'free' : 'one',
      }));
      const ended = await clients.call('Shop.Ends', mixed);
      expect(ended.code).toBe(RESOURCE_EXHAUSTED);
      expect(ended.replies.map(({ text }) => text)).toEqual(['1', '2', '3', '4']);
      expect(policyOf(ended)).toBe('messages');
    });
  });

  it('works in a hybrid app that says nothing about it', async () => {
    const server = await GrpcServer.start(major, { kind: 'memory', hybrid: true });
    expect(await server.clients.codes(3, 'Shop.Named')).toEqual([OK, OK, RESOURCE_EXHAUSTED]);
    expect(await server.clients.codes(2, 'Shop.BareChat')).toEqual([OK, RESOURCE_EXHAUSTED]);
    expect(server.written).toBe('');
    await server.stop();
  });

  it('applies a policy to handlers of a hybrid app that hands its configuration on', async () => {
    const server = await GrpcServer.start(major, { kind: 'applied', hybrid: true });
    expect(await server.clients.codes(1, 'Plain.Say')).toEqual([OK]);
    expect(await server.clients.codes(3, 'Plain.BareChat')).toEqual([
      OK,
      RESOURCE_EXHAUSTED,
      RESOURCE_EXHAUSTED,
    ]);
    expect(await server.clients.codes(1, 'Plain.Say')).toEqual([RESOURCE_EXHAUSTED]);
    await server.stop();
  });

  it('tells about limits in the initial metadata, if it is told to', async () => {
    const server = await GrpcServer.start(major, { kind: 'quota' });
    const told = [];
    for (let i = 0; i < 3; i++) {
      const { code, headers } = await server.clients.call('Crowded.Look');
      told.push([code, headers.get('ratelimit'), headers.get('ratelimit-policy')]);
    }
    const policy = ['"two";q=2;w=60'];
    expect(told).toEqual([
      [OK, ['"two";r=1;t=30'], policy],
      [OK, ['"two";r=0;t=60'], policy],
      [RESOURCE_EXHAUSTED, ['"two";r=0;t=30'], policy],
    ]);
    await server.stop();
  });

  it('answers 14 when the whole service has too little, and tells nobody whose it is', async () => {
    const server = await GrpcServer.start(major, { kind: 'quota' });
    let last = await server.clients.call('Crowded.Enter');
    for (let i = 0; i < 500 && last.code === OK; i++) {
      last = await server.clients.call('Crowded.Enter');
    }
    expect(last).toMatchObject({ code: UNAVAILABLE, details: 'The service is at its capacity' });
    const { 'retry-after-ms': retryMs, 'grpc-retry-pushback-ms': pushbackMs } = trailersOf(last);
    expect(Number(pushbackMs)).toBeGreaterThanOrEqual(Number(retryMs));
    expect(Number(pushbackMs)).toBeLessThanOrEqual(Math.ceil(Number(retryMs) * 1.2));
    expect(detailsOf(last)).toMatchObject({
      code: UNAVAILABLE,
      details: { ErrorInfo: { reason: 'OVERLOADED', domain: 'shop.example' } },
    });
    expect(Object.keys(detailsOf(last).details)).toEqual(['RetryInfo', 'ErrorInfo']);
    await server.stop();
  });

  it('keeps 200 client streams in order while Redis decides, and leaves none hanging', async () => {
    const redis = await startRedis();
    // A little slower than on loopback, so that a decision comes in the middle of a stream.
    const proxy = await startProxy({ targetPort: redis.port });
    proxy.delayReplies(3);
    const server = await GrpcServer.start(major, {
      kind: 'redis',
      redisUrl: proxy.url,
    });
    const numbers = Array.from({ length: 40 }, (_, number) => number);
    const messages = numbers.map((number) => ({ number }));
    const calls: Promise<Outcome>[] = [];
    for (let i = 0; i < 200; i++) {
      calls.push(server.clients.trickle('Shared.Collect', messages));
      await new Promise((resolve) => setImmediate(resolve));
    }
    const outcomes = await Promise.all(calls);
    const passed = outcomes.filter(({ code }) => code === OK);
    expect(passed).toHaveLength(150);
    for (const { replies } of passed) expect(replies[0]?.numbers).toEqual(numbers);
    const denied = outcomes.filter(({ code }) => code === RESOURCE_EXHAUSTED);
    expect(denied).toHaveLength(50);
    expect(server.written).toBe('');
    await server.stop();
    await redis.stop();
  });
});

function trailersOf({ trailers }: Outcome): Record<string, unknown> {
  return trailers.getMap();
}

function detailsOf({ trailers }: Outcome): ReturnType<typeof readStatus> {
  return readStatus(trailers.get('grpc-status-details-bin')[0] as Buffer);
}

function policyOf(outcome: Outcome): string | undefined {
  const { ErrorInfo } = detailsOf(outcome).details as {
    ErrorInfo: { metadata: { policy?: string } };
  };
  return ErrorInfo.metadata.policy;
}
