import { Controller } from '@nestjs/common';
import { EventPattern, MessagePattern } from '@nestjs/microservices';
import { DroppedEvents, RateLimit, RateLimitModule, type KafkaOptions } from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { kafkaWire, type KafkaDouble } from './kafka-double.js';
import { startMessages, type MessageApp } from './message-app.js';

const seen: string[] = [];

@Controller()
class Orders {
  @EventPattern('ordered')
  @RateLimit({ rate: 1, period: '3s', key: 'global' })
  ordered({ id }: { id: string }): void {
    seen.push(id);
  }

  @MessagePattern('asked')
  @RateLimit({ rate: 1, period: '3s', key: 'global' })
  asked({ id }: { id: string }): object {
    seen.push(id);
    return { id };
  }
}

describe('events of Kafka', () => {
  let clock: ManualClock;
  let kafka: KafkaDouble;
  let app: MessageApp;

  const start = async (options: Partial<KafkaOptions>): Promise<void> => {
    app = await startMessages(await kafkaWire((server) => (kafka = server)), 'stand-alone', {
      imports: [RateLimitModule.forRoot({ clock, kafka: options })],
      controllers: [Orders],
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

  it('are dropped, and their offset is committed, if that would take too long', async () => {
    await start({ maxWait: '2s' });
    await app.emit('ordered', { id: 'a' });
    await app.emit('ordered', { id: 'b' });
    expect([seen, kafka.refused]).toEqual([['a'], []]);
    expect(app.app.get(DroppedEvents).byHandler()).toEqual({ 'Orders.ordered': 1 });
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

  it('wait, requests do not: their error is the reply, and their offset is committed', async () => {
    await start({});
    expect(await app.send('asked', { id: 'a' })).toEqual({ id: 'a' });
    await expect(app.send('asked', { id: 'b' })).rejects.toMatchObject({
      code: 'RATE_LIMITED',
      policy: expect.stringMatching(/^limit-[0-9a-f]{8}$/) as string,
      retryAfterMs: 3000,
    });
    expect([seen, kafka.refused, kafka.heartbeats]).toEqual([['a'], [], 0]);
  });

  it('may not be told to wait for something that is no time', async () => {
    await expect(start({ maxWait: 'long' })).rejects.toThrow('kafka.maxWait');
    await expect(start({ maxWiat: 1 } as never)).rejects.toThrow('maxWiat');
    await start({});
  });
});
