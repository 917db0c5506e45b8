import { Controller, UseGuards, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Ctx, EventPattern, MessagePattern } from '@nestjs/microservices';
import {
  DroppedEvents,
  RateLimit,
  RateLimiter,
  RateLimitModule,
  rateLimitOf,
  type ConsumptionReport,
} from 'nestjs-weir';
import { stopAll, until } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';
import { startMessages, type MessageApp } from '../support/nest/message-app.js';
import { WIRES } from '../support/nest/message-wires.js';

const seen: unknown[] = [];

class FakeAuth implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const { token } = context.switchToRpc().getData<{ token?: string }>();
    if (token) Object.assign(context.switchToRpc().getContext<object>(), { user: { id: token } });
    return true;
  }
}

@Controller()
class Messages {
  @MessagePattern('by-address')
  @RateLimit('per-address')
  byAddress(): object {
    return { ok: true };
  }

  @MessagePattern('by-user')
  @RateLimit('per-user')
  @UseGuards(FakeAuth)
  byUser(): object {
    return { ok: true };
  }

  @MessagePattern({ cmd: 'sum', version: 1 })
  @RateLimit()
  sum(): object {
    return { ok: true };
  }

  @MessagePattern(['one', 'other'])
  @RateLimit()
  several(@Ctx() context: object): object {
    return { allowed: rateLimitOf(context)?.allowed };
  }

  @MessagePattern('by-place')
  @RateLimit('first', { quota: false })
  byPlace(): object {
    return { ok: true };
  }

  @MessagePattern('slow')
  @RateLimit('shaped', { quota: false })
  slow(): object {
    return { ok: true };
  }

  @EventPattern('slow-event')
  @RateLimit('shaped', { quota: false })
  slowEvent(data: unknown): void {
    seen.push(data);
  }
}

afterAll(stopAll);

describe('messages over TCP', () => {
  const clock = new ManualClock();
  let app: MessageApp;
  let limiter: RateLimiter;

  beforeEach(async () => {
    clock.advance(600_000);
    seen.length = 0;
    app = await startMessages(await WIRES['tcp']!(), 'stand-alone', {
      imports: [
        RateLimitModule.forRoot({
          clock,
          app: 'shop',
          quota: { apps: { shop: { guaranteed: 100, burst: 200 } } },
          policies: {
            'per-address': { rate: 5, period: '1m' },
            first: { rate: 5, period: '1m', key: { param: 0 } },
            'per-user': { rate: 5, period: '1m', key: 'user', anonymous: 'global' },
            shaped: {
              algorithm: 'leaky-bucket',
              mode: 'shaper',
              rate: '1/s',
              burst: 20,
              key: 'global',
            },
          },
        }),
      ],
      controllers: [Messages],
    });
    limiter = app.app.get(RateLimiter);
  });

  afterEach(() => app.close());

  const left = async (policy: string, key: string): Promise<number> =>
    (await limiter.peek({ policy, key })).remaining;

  it('come from the address of their socket', async () => {
    await app.send('by-address', {});
    expect(await left('per-address', '127.0.0.1')).toBe(4);
  });

  it('are about what they carry at a place: of a list its elements, else the first', async () => {
    for (const payload of [['sku-1', 2], ['sku-1'], 'sku-1', 7, [], {}, [{ sku: 1 }]]) {
      await app.send('by-place', payload);
    }
    const keys = ['sku-1', '7', '(none)'];
    expect(await Promise.all(keys.map((key) => left('first', key)))).toEqual([2, 4, 2]);
  });

  it('come from whom a guard says, else from whom they say themselves', async () => {
    await app.send('by-user', { token: 'ann', user: 'bob' });
    await app.send('by-user', { user: 'bob' });
    await app.send('by-user', {});
    const keys = ['user:ann', 'user:bob', 'anonymous:global'];
    expect(await Promise.all(keys.map((key) => left('per-user', key)))).toEqual([4, 4, 4]);
  });

  it('are counted by the pattern of their handler', async () => {
    const reports: ConsumptionReport[] = [];
    limiter.on('consumption', (report) => reports.push(report));
    await app.send({ version: 1, cmd: 'sum' }, {});
    expect(await app.send('one', {})).toEqual({ allowed: true });
    await app.send('other', {});
    await app.send('other', {});
    await clock.advanceAsync(2000);
    const counts = reports.flatMap(({ byMethod }) =>
      Object.entries(byMethod).map(([method, { count }]) => `${count} ${method}`),
    );
    expect(counts.sort()).toEqual(['1 one', '1 {"cmd":"sum","version":1}', '2 other']);
  });

  it('give their tokens back when the caller hangs up while they are held', async () => {
    await app.send('slow', {});
    const before = await left('shaped', 'global');
    const held = Array.from({ length: 12 }, () => app.send('slow', {}).catch(() => undefined));
    await until(async () => (await left('shaped', 'global')) === before - 12);
    const timers = clock.pending;
    await app.hangUp();
    await until(async () => (await left('shaped', 'global')) === before);
    expect(clock.pending).toBe(timers - 12);
    await Promise.all(held);
  });

  it('go on to their handler when they are events, though the sender is gone', async () => {
    await app.send('slow', {});
    const before = await left('shaped', 'global');
    await app.emit('slow-event', { id: 1 });
    await until(async () => (await left('shaped', 'global')) === before - 1);
    await app.hangUp();
    await clock.advanceAsync(1000);
    await until(() => seen.length === 1);
    expect(seen).toEqual([{ id: 1 }]);
  });

  it('that nobody waits for may be denied too, and the service goes on', async () => {
    for (let i = 0; i < 8; i++) await app.emit('by-address', {});
    await until(async () => (await left('per-address', '127.0.0.1')) === 0);
    await expect(app.send('by-address', {})).rejects.toMatchObject({ code: 'RATE_LIMITED' });
    clock.advance(60_000);
    expect(await app.send('by-address', {})).toEqual({ ok: true });
  });
});

@Controller()
class Plain {
  @MessagePattern('plain')
  plain(): object {
    return { ok: true };
  }

  @EventPattern('plain-event')
  plainEvent(data: unknown): void {
    seen.push(data);
  }
}

describe('what applies to every handler', () => {
  it('limits messages and events without a decorator', async () => {
    seen.length = 0;
    const policies = { all: { rate: 2, period: '1m', key: 'route' } } as const;
    const app = await startMessages(await WIRES['tcp']!(), 'stand-alone', {
      imports: [RateLimitModule.forRoot({ clock: new ManualClock(), policies, apply: ['all'] })],
      controllers: [Plain],
    });
    for (let i = 0; i < 2; i++) expect(await app.send('plain', {})).toEqual({ ok: true });
    await expect(app.send('plain', {})).rejects.toMatchObject({ code: 'RATE_LIMITED' });
    for (let i = 0; i < 3; i++) await app.emit('plain-event', {});
    const dropped = app.app.get(DroppedEvents);
    await until(() => dropped.total === 1);
    expect([seen.length, dropped.byHandler()]).toEqual([2, { 'Plain.plainEvent': 1 }]);
    await app.close();
  });
});
