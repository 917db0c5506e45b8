import { Controller, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  Ctx,
  EventPattern,
  MessagePattern,
  type MicroserviceOptions,
  type RmqContext,
} from '@nestjs/microservices';
import { connect, type Channel, type ChannelModel } from 'amqplib';
import { isRateLimitError, Overload, RateLimit, RateLimitModule } from 'nestjs-weir';
import { startRabbitmq } from '../support/brokers.js';
import { stopAll, until } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';
import { startMessages, type MessageApp } from '../support/nest/message-app.js';
import { rmqWire, type Wire } from '../support/nest/message-wires.js';

const seen: string[] = [];

function acknowledge(context: RmqContext): void {
  (context.getChannelRef() as Channel).ack(context.getMessage() as never);
}

@Controller()
class Orders {
  @MessagePattern('ask')
  @RateLimit('one')
  ask(@Ctx() context: RmqContext): object {
    acknowledge(context);
    return { ok: true };
  }

  @MessagePattern('ready')
  ready(@Ctx() context: RmqContext): object {
    acknowledge(context);
    return { ready: true };
  }

  @EventPattern('ordered')
  @RateLimit('one')
  ordered(@Ctx() context: RmqContext): void {
    acknowledge(context);
    const { data } = JSON.parse(context.getMessage().content as string) as { data: { id: string } };
    seen.push(data.id);
  }

  @MessagePattern('own-words')
  @RateLimit({ rate: 1, period: '1m', key: 'global', rejection: () => new Error('not this way') })
  ownRejection(@Ctx() context: RmqContext): object {
    acknowledge(context);
    return { ok: true };
  }
}

let port: number;

beforeAll(async () => {
  ({ port } = await startRabbitmq());
});
afterAll(stopAll);

/** One message is delivered at a time, so each of them must be acknowledged for the next to come. */
describe('RabbitMQ with acknowledgements', () => {
  const clock = new ManualClock();
  let app: MessageApp;
  let connection: ChannelModel;
  let channel: Channel;

  beforeAll(async () => {
    connection = await connect(`amqp://127.0.0.1:${port}`);
    channel = await connection.createChannel();
    await channel.assertQueue('dead-letters');
    const arguments_ = {
      'x-dead-letter-exchange': '',
      'x-dead-letter-routing-key': 'dead-letters',
    };
    const wire = rmqWire(port, { noAck: false, queueOptions: { arguments: arguments_ } });
    app = await startMessages(wire, 'stand-alone', {
      imports: [
        RateLimitModule.forRoot({
          clock,
          policies: { one: { rate: 1, period: '1m', key: 'global' } },
          // Nothing that these handlers do is counted against it, so that only one test fills it.
          overload: { enabled: true, maxInFlight: 1 },
        }),
      ],
      controllers: [Orders],
    });
  });

  beforeEach(() => clock.advance(600_000));

  afterAll(async () => {
    await app.close();
    await connection.close();
  });

  const letters = async (): Promise<unknown[]> => {
    const found: unknown[] = [];
    for (;;) {
      const message = await channel.get('dead-letters', { noAck: true });
      if (message === false) return found;
      found.push(JSON.parse(message.content.toString()));
    }
  };

  it('acknowledges a denied request, whose answer is its error', async () => {
    const denied = [];
    for (let i = 0; i < 5; i++) {
      denied.push(isRateLimitError(await app.send('ask', {}).catch((error: unknown) => error)));
    }
    expect(denied).toEqual([false, true, true, true, true]);
    clock.advance(60_000);
    expect(await app.send('ask', {})).toEqual({ ok: true });
    expect(await letters()).toEqual([]);
  });

  it('does so as well where a policy has its own words', async () => {
    await app.send('own-words', {});
    for (let i = 0; i < 3; i++) {
      await expect(app.send('own-words', {})).rejects.toMatchObject({ status: 'error' });
    }
  });

  it('hands a denied event over to the dead letters, once', async () => {
    for (const id of ['a', 'b', 'c']) await app.emit('ordered', { id });
    const found: unknown[] = [];
    await until(async () => found.push(...(await letters())) >= 2);
    expect(seen).toEqual(['a']);
    expect(found).toMatchObject([{ data: { id: 'b' } }, { data: { id: 'c' } }]);
    clock.advance(60_000);
    expect(await app.send('ask', {})).toEqual({ ok: true });
  });

  it('does the same with what the line refuses, which takes no token', async () => {
    const overload = app.app.get(Overload);
    overload.line.started();
    const refused = async (work: Promise<unknown>): Promise<unknown> => {
      const end = work.catch((error: unknown) => error);
      await until(() => overload.stats().waiting === 1);
      clock.advance(200);
      clock.advance(201);
      return end;
    };
    expect(await refused(app.send('ask', {}))).toMatchObject({ code: 'OVERLOADED' });
    expect(await letters()).toEqual([]);
    await refused(app.emit('ordered', { id: 'late' }));
    const found: unknown[] = [];
    await until(async () => found.push(...(await letters())) >= 1);
    expect(found).toMatchObject([{ data: { id: 'late' } }]);
    overload.line.ended();
    expect(await app.send('ask', {})).toEqual({ ok: true });
  });
});

@Controller()
class Both {
  @MessagePattern('both')
  @RateLimit({ rate: 1, period: '1m', key: { header: 'x-queue' } })
  both(@Ctx() context: RmqContext): object {
    const { headers } = context.getMessage()['properties'] as { headers: Record<string, string> };
    if (headers['x-queue'] === 'acks') acknowledge(context);
    return { ok: true };
  }
}

describe('two queues of one app, of which only one is acknowledged', () => {
  it('are each treated as they are consumed', async () => {
    class AppModule {}
    Module({
      imports: [RateLimitModule.forRoot({ clock: new ManualClock() })],
      controllers: [Both],
    })(AppModule);
    const app = await NestFactory.create(AppModule, { logger: false });
    const wires: { queue: string; wire: Wire }[] = [];
    for (const queue of ['no-acks', 'acks']) {
      const wire = rmqWire(port, { noAck: queue === 'no-acks' });
      app.connectMicroservice<MicroserviceOptions>(wire.serve());
      wires.push({ queue, wire });
    }
    await app.startAllMicroservices();
    for (const { queue, wire } of wires) {
      const client = await wire.connect();
      const denied = [];
      for (let i = 0; i < 4; i++) {
        const answer = client.send('both', {}, { 'x-queue': queue });
        denied.push(isRateLimitError(await answer.catch((error: unknown) => error)));
      }
      expect(denied).toEqual([false, true, true, true]);
      await client.close();
    }
    await app.close();
  });
});
