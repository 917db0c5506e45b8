import { Controller } from '@nestjs/common';
import { EventPattern, MessagePattern } from '@nestjs/microservices';
import {
  DroppedEvents,
  RateLimit,
  RateLimiter,
  RateLimitModule,
  type KafkaOptions,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { kafkaWire, type KafkaDouble } from './kafka-double.js';
import { startMessages, type MessageApp } from '../support/nest/message-app.js';

const seen: string[] = [];
const quota = { apps: { orders: { guaranteed: 1, burst: 1 } } };
const policies = { shared: { rate: 1, key: 'global' } } as const;

@Controller()
class Orders {
  @EventPattern('ordered')
  @RateLimit({ rate: 1, period: '3s', key: 'global' })
  ordered({ id }: { id: string }): void {
    seen.push(id);
  }

  @EventPattern('sent')
  @RateLimit({ rate: 1, period: '1s', key: { param: 'sender' } })
  sent({ id }: { id: string }): void {
    seen.push(id);
  }

  @EventPattern('shaped')
  @RateLimit({
    algorithm: 'leaky-bucket',
    mode: 'shaper',
    rate: 1,
    burst: 60,
    key: { param: 'sender' },
  })
  shaped({ id }: { id: string }): void {
    seen.push(id);
  }

  @EventPattern('routed')
  @RateLimit({ rate: 1, period: '1s', key: ['route', 'global'] })
  routed({ id }: { id: string }): void {
    seen.push(id);
  }

  @EventPattern('chosen')
  @RateLimit(() => 'shared')
  chosen({ id }: { id: string }): void {
    seen.push(id);
  }

  @MessagePattern('asked')
  @RateLimit({ rate: 1, period: '3s', key: 'global' })
  asked({ id }: { id: string }): object {
    seen.push(id);
    return { id };
  }
}

@Controller()
class Bills {
  @EventPattern('charged')
  @RateLimit()
  charged({ id }: { id: string }): void {
    seen.push(id);
  }
}

describe('events of Kafka', () => {
  let clock: ManualClock;
  let kafka: KafkaDouble;
  let app: MessageApp;

  const start = async (
    options: Partial<KafkaOptions>,
    more: RateLimitModuleInput = {},
  ): Promise<void> => {
    app = await startMessages(await kafkaWire((server) => (kafka = server)), 'stand-alone', {
      imports: [RateLimitModule.forRoot({ clock, kafka: options, policies, ...more })],
      controllers: more.quota === undefined ? [Orders] : [Bills],
    });
  };

  beforeEach(() => {
    clock = new ManualClock();
    seen.length = 0;
  });

  afterEach(() => app.close());

  /** Delivers, and tells whether the offset was committed. */
  const deliver = (topic: string, id: string): { readonly isDone: boolean } => {
    const delivery = { isDone: false };
    void app.emit(topic, { id }).then(() => (delivery.isDone = true));
    return delivery;
  };

  it('wait in place for their tokens, with heartbeats', async () => {
    await start({});
    await app.emit('ordered', { id: 'a' });
    const second = deliver('ordered', 'b');
    await clock.advanceAsync(2900);
    expect([seen, second.isDone]).toEqual([['a'], false]);
    expect(kafka.heartbeats).toBe(2);
    await clock.advanceAsync(200);
    expect([seen, second.isDone]).toEqual([['a', 'b'], true]);
    await clock.advanceAsync(10_000);
    expect([kafka.heartbeats, kafka.refused]).toEqual([3, []]);
    expect(app.app.get(DroppedEvents).total).toBe(0);
  });

  it('are dropped at once where they may not wait', async () => {
    await start({ maxWait: 0 });
    await app.emit('ordered', { id: 'a' });
    clock.advance(2999);
    await app.emit('ordered', { id: 'b' });
    expect([seen, kafka.refused]).toEqual([['a'], []]);
    expect(app.app.get(DroppedEvents).total).toBe(1);
  });

  it('are what comes without a reply topic, whatever its handler', async () => {
    await start({ maxWait: 0 });
    await app.emit('asked', { id: 'a' });
    await app.emit('asked', { id: 'b' });
    expect([seen, kafka.refused]).toEqual([['a'], []]);
    expect(app.app.get(DroppedEvents).total).toBe(1);
  });

  describe('of senders that choose the key of a policy', () => {
    /** As a partition is consumed: each after the one before. Resolves with the time that it took. */
    const flood = async (topic: string, events: number, partition = 0): Promise<number> => {
      const startMs = clock.now() / 1000;
      let endMs: number | undefined;
      const consume = async (): Promise<void> => {
        for (let i = 0; i < events; i++) {
          await kafka.deliver(topic, { sender: 'mallory', id: `${topic}-${i}` }, {}, partition);
        }
        endMs = clock.now() / 1000;
      };
      void consume();
      while (endMs === undefined) await clock.advanceAsync(100);
      return endMs - startMs;
    };

    it('hold a partition up for maxWait in all, and are dropped at once after that', async () => {
      await start({});
      expect(await flood('sent', 1000)).toBeLessThan(6000);
      expect(seen).toHaveLength(6);
      expect(app.app.get(DroppedEvents).byHandler()).toEqual({ 'Orders.sent': 994 });
      expect(kafka.refused).toEqual([]);
    });

    it('hold it up no longer by a shaper, whose tokens go back, and with heartbeats', async () => {
      await start({});
      expect(await flood('shaped', 1000)).toBeLessThan(6000);
      expect(seen.length).toBeGreaterThan(3);
      expect(seen.length).toBeLessThan(8);
      expect(app.app.get(DroppedEvents).byHandler()).toEqual({
        'Orders.shaped': 1000 - seen.length,
      });
      expect(kafka.heartbeats).toBeGreaterThan(0);
      const [policy] = app.app
        .get(RateLimiter)
        .policyNames()
        .filter((name) => name.includes('shaped'));
      const left = await app.app.get(RateLimiter).peek({ policy: policy!, key: 'mallory' });
      expect(left.remaining).toBeGreaterThan(55);
    });

    it('hold it up for a tenth of the time from then on', async () => {
      await start({});
      await flood('sent', 100);
      const startMs = clock.now() / 1000;
      let heldMs = 0;
      while (clock.now() / 1000 < startMs + 100_000) {
        heldMs += await flood('sent', 3);
        await clock.advanceAsync(100);
      }
      expect(heldMs).toBeGreaterThan(8000);
      expect(heldMs).toBeLessThan(12_000);
    });

    it('hold up no partition but their own', async () => {
      await start({});
      await flood('sent', 100);
      const other = kafka.deliver('sent', { sender: 'mallory', id: 'other' }, {}, 1);
      await clock.advanceAsync(1000);
      await other;
      expect(seen).toContain('other');
    });

    it.each([
      ['where a function chooses the policy', 'chosen', {}],
      ['where a function says whose quota it is', 'charged', { quota, app: () => 'orders' }],
    ])('hold it up no longer %s', async (_where, topic, more) => {
      await start({}, more);
      expect(await flood(topic, 20)).toBeLessThanOrEqual(6000);
      expect(seen.length).toBeLessThan(10);
    });

    it.each([
      ['the policy has one key for all', 'routed', {}],
      ["it is the app's quota", 'charged', { quota, app: 'orders' }],
    ])('wait for as long as it takes where %s', async (_where, topic, more) => {
      await start({}, more);
      expect(await flood(topic, 21)).toBeGreaterThanOrEqual(19_000);
      expect(seen).toHaveLength(21);
    });
  });

  it('may not be told to wait for something that is no time', async () => {
    await expect(start({ maxWait: 'long' as never })).rejects.toThrow('kafka.maxWait');
    await expect(start({ maxWiat: 1 } as never)).rejects.toThrow('maxWiat');
    await start({});
  });
});
