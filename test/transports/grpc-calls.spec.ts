import {
  loadPackageDefinition,
  Metadata,
  Server,
  ServerCredentials,
  type sendUnaryData,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServiceClientConstructor,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import {
  createRateLimiter,
  isRateLimitError,
  isUnavailableError,
  retryAfterMsOf,
  type RateLimiter,
} from 'nestjs-weir';
import { limitCalls, type CallCharge, type LimitCallsOptions } from 'nestjs-weir/grpc';
import { statusDetails } from '../../lib/transports/grpc/status-details.js';
import { ManualClock } from '../support/manual-clock.js';
import { until } from '../support/until.js';
import { GrpcClients } from '../support/nest/grpc-clients.js';
import { PROTO } from '../support/nest/grpc-servers.js';

const OK = 0;
const CANCELLED = 1;
const UNKNOWN = 2;
const RESOURCE_EXHAUSTED = 8;
const UNAVAILABLE = 14;

const TWO = { policy: 'two', key: 'partner' };

describe('limitCalls', () => {
  const server = new Server();
  const clock = new ManualClock();
  let url: string;
  let limiter: RateLimiter;
  let made: GrpcClients[] = [];
  /** Calls that have reached the server. */
  let received = 0;
  /** The refusal that the server answers in place of a reply. */
  let refusal: { code: number; details: string; metadata: Metadata } | undefined;

  beforeAll(async () => {
    const { weir } = loadPackageDefinition(loadSync(PROTO)) as unknown as {
      weir: { test: { Shop: ServiceClientConstructor } };
    };
    server.addService(weir.test.Shop.service, {
      Named: (_call: ServerUnaryCall<object, object>, callback: sendUnaryData<object>) => {
        received++;
        if (refusal === undefined) callback(null, { text: 'ok' });
        else callback(refusal);
      },
      Chat: (call: ServerDuplexStream<{ name: string }, { text: string }>) => {
        received++;
        call.on('data', ({ name }: { name: string }) => call.write({ text: name }));
        call.on('end', () => call.end());
      },
      Collect: (
        call: ServerReadableStream<{ number: number }, object>,
        callback: sendUnaryData<object>,
      ) => {
        received++;
        const numbers: number[] = [];
        call.on('data', ({ number }: { number: number }) => numbers.push(number));
        call.on('end', () => callback(null, { numbers }));
      },
    });
    const credentials = ServerCredentials.createInsecure();
    const port = await new Promise<number>((resolve, reject) => {
      server.bindAsync('127.0.0.1:0', credentials, (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      );
    });
    url = `127.0.0.1:${port}`;
  });

  beforeEach(() => {
    received = 0;
    refusal = undefined;
    limiter = createRateLimiter({
      clock,
      policies: {
        two: { rate: 2, period: '1m' },
        shaped: { algorithm: 'leaky-bucket', mode: 'shaper', rate: 1, period: '10s', burst: 3 },
      },
    });
  });

  afterEach(async () => {
    for (const clients of made) clients.close();
    made = [];
    await limiter.close();
  });
  afterAll(() => server.forceShutdown());

  function clientsWith(
    what: Parameters<typeof limitCalls>[1],
    options: Partial<LimitCallsOptions> = {},
    limits: Pick<RateLimiter, 'tryAcquire' | 'refund'> = limiter,
  ): GrpcClients {
    const interceptors = [limitCalls(limits, what, { clock, ...options })];
    const clients = new GrpcClients(url, PROTO, { interceptors });
    made.push(clients);
    return clients;
  }

  it('fails with 8 what is too much, and the server never hears of it', async () => {
    const clients = clientsWith(TWO);
    expect(await clients.codes(4, 'Shop.Named')).toEqual([
      OK,
      OK,
      RESOURCE_EXHAUSTED,
      RESOURCE_EXHAUSTED,
    ]);
    expect(received).toBe(2);
    const { details, trailers } = await clients.call('Shop.Named');
    expect(details).toBe('Too many requests; this call was not sent');
    expect(trailers.get('retry-after-ms')).toEqual(['30000']);
    clock.advance(30_000);
    expect(await clients.codes(1, 'Shop.Named')).toEqual([OK]);
  });

  it('asks once for a stream, and fails it as a stream', async () => {
    const clients = clientsWith(TWO);
    const messages = ['a', 'b', 'c'].map((name) => ({ name }));
    const passed = await clients.call('Shop.Chat', messages);
    expect(passed.replies.map(({ text }) => text)).toEqual(['a', 'b', 'c']);
    const numbers = await clients.call('Shop.Collect', [{ number: 1 }, { number: 2 }]);
    expect(numbers.replies[0]?.numbers).toEqual([1, 2]);
    expect((await clients.call('Shop.Chat', messages)).code).toBe(RESOURCE_EXHAUSTED);
    expect((await clients.call('Shop.Collect', [{ number: 1 }])).code).toBe(RESOURCE_EXHAUSTED);
    expect(received).toBe(2);
  });

  it('may ask by what is called and with what metadata, and lets free calls go', async () => {
    const question: CallCharge = ({ path, metadata }) => {
      const [tenant] = metadata.get('x-tenant');
      return tenant === undefined ? undefined : { policy: 'two', key: `${path} ${String(tenant)}` };
    };
    const clients = clientsWith(question);
    const codes = [];
    for (const tenant of ['a', 'a', 'a', 'b']) {
      codes.push((await clients.call('Shop.Named', [{}], { 'x-tenant': tenant })).code);
    }
    expect(codes).toEqual([OK, OK, RESOURCE_EXHAUSTED, OK]);
    expect(await clients.codes(4, 'Shop.Named')).toEqual([OK, OK, OK, OK]);
    expect(limiter.peek({ policy: 'two', key: '/weir.test.Shop/Named b' })).toMatchObject({
      remaining: 1,
    });
  });

  it.each([RESOURCE_EXHAUSTED, UNAVAILABLE])(
    'leaves a server alone that answered %i, for as long as it asked for',
    async (code) => {
      const clients = clientsWith(({ metadata }) => ({
        policy: 'two',
        key: String(metadata.get('x-tenant')[0]),
      }));
      const call = (tenant: string) => clients.call('Shop.Named', [{}], { 'x-tenant': tenant });
      refusal = refusalWith(code, '5000');
      expect((await call('a')).details).toBe('not now');
      refusal = undefined;
      const local = await call('a');
      expect([local.code, local.trailers.get('retry-after-ms')]).toEqual([code, ['5000']]);
      // It was meant for one tenant, and took no token of it.
      expect((await call('b')).code).toBe(OK);
      expect(received).toBe(2);
      clock.advance(4_999);
      expect((await call('a')).trailers.get('grpc-retry-pushback-ms')).toEqual(['1']);
      clock.advance(1);
      expect((await call('a')).code).toBe(OK);
      expect(received).toBe(3);
    },
  );

  it.each([
    ['its limit', 8, 'RATE_LIMITED', [true, false]],
    ['its capacity', 14, 'OVERLOADED', [true, false]],
    ['a breaker', 14, 'BREAKER_OPEN', [false, true]],
    ['no reason, and 8', 8, undefined, [true, false]],
    ['no reason, and 14', 14, undefined, [true, false]],
  ])(
    'says of a call that it did not send what the server had said: %s',
    async (_, code, reason, kinds) => {
      const clients = clientsWith(TWO);
      refusal = refusalWith(code, '5000');
      if (reason !== undefined) {
        const body = {
          status: 'error',
          statusCode: 429,
          code: reason,
          message: 'not now',
        } as const;
        refusal.metadata.set('grpc-status-details-bin', statusDetails(code, body, 'shop'));
      }
      await clients.call('Shop.Named');
      clock.advance(2_000);
      const { trailers: metadata, ...rest } = await clients.call('Shop.Named');
      const error = { ...rest, metadata };
      expect(received).toBe(1);
      expect([isRateLimitError(error), isUnavailableError(error)]).toEqual(kinds);
      expect(retryAfterMsOf(error)).toBe(3_000);
    },
  );

  it.each([
    ['a negative pushback', '-1', {}],
    ['one that is no number', 'soon', {}],
    ['none', undefined, {}],
    ['one that it was told to ignore', '5000', { pushback: false }],
  ])('goes on after %s', async (_, pushback, options) => {
    const clients = clientsWith(TWO, options);
    refusal = refusalWith(UNAVAILABLE, pushback);
    expect(await clients.codes(2, 'Shop.Named')).toEqual([UNAVAILABLE, UNAVAILABLE]);
    expect(received).toBe(2);
  });

  it('takes the hint of a server that wants no retry before the deadline', async () => {
    const clients = clientsWith(TWO);
    refusal = refusalWith(RESOURCE_EXHAUSTED, '-1');
    refusal.metadata.set('retry-after-ms', '30000');
    expect(await clients.codes(2, 'Shop.Named')).toEqual([RESOURCE_EXHAUSTED, RESOURCE_EXHAUSTED]);
    expect(received).toBe(1);
  });

  it('honours no pushback for longer than it was told to', async () => {
    const clients = clientsWith(() => undefined, { longestPushback: '10s' });
    refusal = refusalWith(UNAVAILABLE, '999999999');
    await clients.call('Shop.Named');
    clock.advance(9_999);
    await clients.call('Shop.Named');
    expect(received).toBe(1);
    clock.advance(1);
    await clients.call('Shop.Named');
    expect(received).toBe(2);
  });

  it('waits for a limiter that has to ask its store, and keeps what was written meanwhile', async () => {
    let answer!: () => void;
    const asked = new Promise<void>((resolve) => (answer = resolve));
    const slow = {
      tryAcquire: async () => {
        await asked;
        return limiter.tryAcquire(TWO);
      },
      refund: () => undefined,
    };
    const { call, outcome } = clientsWith(TWO, {}, slow).start('Shop.Chat');
    for (const name of ['a', 'b', 'c']) call.write({ name });
    call.end();
    answer();
    expect((await outcome).replies.map(({ text }) => text)).toEqual(['a', 'b', 'c']);
  });

  it('gives back the tokens of a call that was cancelled before it went', async () => {
    const refunded: unknown[] = [];
    let answer!: () => void;
    const asked = new Promise<void>((resolve) => (answer = resolve));
    const slow = {
      tryAcquire: async () => {
        await asked;
        return limiter.tryAcquire(TWO);
      },
      refund: (request: unknown) => void refunded.push(request),
    };
    const { call, outcome } = clientsWith(TWO, {}, slow).start('Shop.Named');
    call.cancel();
    expect((await outcome).code).toBe(CANCELLED);
    answer();
    await until(() => refunded.length === 1);
    expect(refunded).toEqual([TWO]);
    expect(received).toBe(0);
  });

  it('holds back what a shaper delays, but not beyond the deadline', async () => {
    const clients = clientsWith({ policy: 'shaped', key: 'k' });
    expect((await clients.call('Shop.Named')).code).toBe(OK);
    const timers = clock.pending;
    const second = clients.start('Shop.Named');
    expect([clock.pending, received]).toEqual([timers + 1, 1]);
    // The third would wait for 20 s, and so long its caller does not.
    const third = await clients.call('Shop.Named');
    expect([third.code, third.trailers.get('retry-after-ms')]).toEqual([
      RESOURCE_EXHAUSTED,
      ['20000'],
    ]);
    clock.advance(10_000);
    expect((await second.outcome).code).toBe(OK);
    expect(received).toBe(2);
  });

  it('fails a call whose question fails, or whose limiter does', async () => {
    const broken = clientsWith(() => {
      throw new Error('whose is it?');
    });
    expect(await broken.call('Shop.Named')).toMatchObject({
      code: UNKNOWN,
      details: 'The call could not be made: whose is it?',
    });
    const rejecting = { tryAcquire: () => Promise.reject(new Error('gone')), refund: () => {} };
    expect((await clientsWith(TWO, {}, rejecting).call('Shop.Named')).code).toBe(UNKNOWN);
    expect(received).toBe(0);
  });

  it('knows its options', () => {
    expect(() => limitCalls(limiter, TWO, { pushbacks: true } as never)).toThrow(
      'limitCalls.pushbacks: no such option',
    );
    expect(() => limitCalls(limiter, TWO, { longestPushback: 'ages' as never })).toThrow(
      'longestPushback',
    );
  });
});

function refusalWith(code: number, pushback: string | undefined) {
  const metadata = new Metadata();
  if (pushback !== undefined) metadata.set('grpc-retry-pushback-ms', pushback);
  return { code, details: 'not now', metadata };
}
