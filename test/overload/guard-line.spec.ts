import { Metadata } from '@grpc/grpc-js';
import { Controller, Get, type INestApplication } from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { EventPattern, KafkaContext, MessagePattern, TcpContext } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { firstValueFrom, type Observable } from 'rxjs';
import {
  DroppedEvents,
  Overload,
  RateLimit,
  RateLimiter,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { Transports } from '../../lib/requests/transport.js';
import { ManualClock } from '../support/manual-clock.js';
import { until } from '../support/until.js';

@Controller()
class Handlers {
  @MessagePattern('ask')
  @RateLimit('p')
  ask(..._: unknown[]): void {}

  @EventPattern('told')
  @RateLimit('p')
  told(..._: unknown[]): void {}

  @Get()
  @RateLimit('p')
  page(): void {}
}

/** One runs, one may wait. HTTP is in line at its server, all other requests at the guard. */
describe('the line at the guard', () => {
  let app: INestApplication;
  let clock: ManualClock;
  let overload: Overload;
  let guard: RateLimitGuard;
  let taken: () => number;

  async function start(changes: RateLimitModuleInput = {}): Promise<void> {
    clock = new ManualClock();
    const module = await Test.createTestingModule({
      imports: [
        RateLimitModule.forRoot({
          policies: { p: { rate: 100, key: 'global' } },
          overload: { enabled: true, maxInFlight: 1, maxWaiting: 1 },
          clock,
          ...changes,
        }),
      ],
      controllers: [Handlers],
    }).compile();
    app = module.createNestApplication();
    await app.init();
    overload = app.get(Overload);
    guard = app.get(RateLimitGuard);
    const limiter = app.get(RateLimiter);
    taken = () => limiter.stats().policies['p']!.allowed;
  }
  afterEach(() => app.close());

  function contextOf(type: string, args: unknown[], name: keyof Handlers): ExecutionContextHost {
    const context = new ExecutionContextHost(args, Handlers, Handlers.prototype[name]);
    context.setType(type);
    return context;
  }

  /** A call, as far as a guard looks at it. */
  const callOf = (headers: Record<string, string> = {}) => {
    const metadata = new Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    return {
      ...{
        metadata,
        cancelled: false,
        getPath: () => '/shop.Shop/Ask',
        getPeer: () => '127.0.0.1:1',
      },
      ...{ getDeadline: () => Infinity, on: () => {}, off: () => {}, emit: () => true },
    };
  };
  const grpc = (call = callOf()) => contextOf('rpc', [{}, call.metadata, call], 'ask');
  const tcp = (name: 'ask' | 'told') =>
    contextOf('rpc', [{}, new TcpContext([{ on: () => {} } as never, name])], name);
  const ws = (socket: object) => contextOf('ws', [socket, { text: 'x' }, 'ask'], 'ask');

  /** The answer of the transport's filter to what the guard has thrown. */
  async function refused(
    context: ExecutionContextHost,
    answer: boolean | Promise<boolean>,
  ): Promise<unknown> {
    const error = await Promise.resolve(answer).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    return app
      .get(Transports)
      .of(context)
      .answer(error as never, context);
  }
  const errorOf = (answer: unknown): Promise<unknown> =>
    firstValueFrom(answer as Observable<unknown>).then(
      () => undefined,
      (error: unknown) => error,
    );

  it('goes on at once while there is room, and charges once', async () => {
    await start();
    const context = tcp('ask');
    expect(guard.canActivate(context)).toBe(true);
    expect([taken(), overload.stats().byTier['all']!.ran]).toEqual([1, 1]);
    // Another guard of the same request.
    expect(guard.canActivate(context)).toBe(true);
    expect(overload.stats().byTier['all']!.ran).toBe(1);
  });

  it('waits for its turn without a token', async () => {
    await start();
    overload.line.started();
    const waiting = guard.canActivate(tcp('ask'));
    expect([overload.stats().waiting, taken()]).toEqual([1, 0]);
    overload.line.ended();
    expect([await waiting, taken()]).toEqual([true, 1]);
  });

  it('does not stand before HTTP, which was in line before', async () => {
    await start();
    overload.line.started();
    const request = { method: 'GET', url: '/', headers: {}, ip: '1.2.3.4' };
    const response = { setHeader: () => {} };
    expect(guard.canActivate(contextOf('http', [request, response], 'page'))).toBe(true);
  });

  describe('refuses', () => {
    beforeEach(async () => {
      await start();
      overload.line.started();
      void guard.canActivate(tcp('ask'));
      expect(overload.stats().waiting).toBe(1);
    });
    afterEach(() => expect(taken()).toBe(0));

    it('a gRPC call with 14, and says when to come back', async () => {
      const context = grpc();
      const status = await errorOf(await refused(context, guard.canActivate(context)));
      const { code, metadata } = status as { code: number; metadata: Metadata };
      expect(code).toBe(14);
      const pushback = Number(metadata.get('retry-after-ms')[0]);
      expect(pushback).toBeGreaterThanOrEqual(1000);
      expect(pushback).toBeLessThanOrEqual(2000);
    });

    it('a message with the error of an overloaded service', async () => {
      const context = tcp('ask');
      const error = await errorOf(await refused(context, guard.canActivate(context)));
      expect(error).toMatchObject({ statusCode: 503, code: 'OVERLOADED' });
    });

    it('an event by dropping it, and counts that', async () => {
      const context = tcp('told');
      expect(await errorOf(await refused(context, guard.canActivate(context)))).toBeUndefined();
      expect(app.get(DroppedEvents).total).toBe(1);
    });

    it('a frame with an error, and leaves the socket alone', async () => {
      const sent: unknown[] = [];
      let isClosed = false;
      const socket = {
        emit: (...event: unknown[]) => sent.push(event),
        disconnect: () => (isClosed = true),
      };
      const context = ws(socket);
      await refused(context, guard.canActivate(context));
      expect(sent).toMatchObject([['exception', { code: 'OVERLOADED', status: 'error' }]]);
      expect(isClosed).toBe(false);
    });
  });

  it('drops a call that was cancelled while it waited', async () => {
    await start();
    overload.line.started();
    const call = callOf();
    const waiting = guard.canActivate(grpc(call));
    call.cancelled = true;
    overload.line.ended();
    expect(await waiting).toBe(false);
    expect([overload.stats().byTier['all']!.gone, taken()]).toEqual([1, 0]);
  });

  it('never refuses an event of Kafka: its sender keeps what is not taken', async () => {
    await start();
    overload.line.started();
    void guard.canActivate(tcp('ask'));
    let beats = 0;
    const heartbeat = (): Promise<void> => Promise.resolve(void beats++);
    const message = { headers: {}, key: null, value: {} } as never;
    const kafka = new KafkaContext([message, 0, 'told', {} as never, heartbeat, {} as never]);
    let isThrough = false;
    const waiting = Promise.resolve(guard.canActivate(contextOf('rpc', [{}, kafka], 'told')));
    void waiting.then(() => (isThrough = true));
    await until(() => beats === 1);
    expect(isThrough).toBe(false);
    overload.line.ended();
    await until(() => overload.stats().waiting === 0);
    clock.advance(200);
    expect(await waiting).toBe(true);
    expect(app.get(DroppedEvents).total).toBe(0);
  });

  it('reads the tier of every transport by the same names', async () => {
    const asked: unknown[] = [];
    await start({
      tier: (question) => {
        asked.push(question);
        return question.headers['x-tier'] as string | undefined;
      },
    });
    await guard.canActivate(grpc(callOf({ 'x-tier': 'S' })));
    await guard.canActivate(tcp('ask'));
    await guard.canActivate(ws({ handshake: { headers: { 'x-tier': 'A' } } }));
    expect(asked).toEqual([
      {
        transport: 'grpc',
        method: '/shop.Shop/Ask',
        path: '/shop.Shop/Ask',
        headers: { 'x-tier': 'S' },
      },
      { transport: 'rpc', method: 'ask', path: 'ask', headers: {} },
      {
        transport: 'ws',
        method: 'message',
        path: 'message',
        headers: { 'x-tier': 'A' },
      },
    ]);
    const { S, A, C } = overload.stats().byTier;
    expect([S!.ran, A!.ran, C!.ran]).toEqual([1, 1, 1]);
  });

  it('chooses the tiers of policies that have none of their own', async () => {
    await start({
      tier: ({ headers }) => headers['x-tier'] as string | undefined,
      policies: {
        p: {
          key: 'global',
          ...{ tiers: { S: 10, gold: 20, C: 1 }, defaultTier: 'C' },
        },
      },
      overload: {},
    });
    for (const tier of ['S', 'gold', 'C', 'exempt', 'moon', undefined]) {
      const context = grpc(callOf(tier === undefined ? {} : { 'x-tier': tier }));
      try {
        await guard.canActivate(context);
      } catch {
        // Denied: counted below.
      }
    }
    const { allowed, denied } = app.get(RateLimiter).stats().policies['p']!;
    // One of S, one of gold, one of C; the other three have the tier C as well, which is empty then.
    expect([allowed, denied]).toEqual([3, 3]);
  });
});
