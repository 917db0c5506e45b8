import { Controller, type INestApplicationContext } from '@nestjs/common';
import {
  ClientKafka,
  EventPattern,
  MessagePattern,
  ServerKafka,
  type KafkaOptions as NestKafkaOptions,
} from '@nestjs/microservices';
import { Kafka, logLevel, type Admin, type Message, type Producer } from 'kafkajs';
import {
  Degrade,
  DroppedEvents,
  RateLimit,
  RateLimitModule,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { lastValueFrom } from 'rxjs';
import { startKafka } from '../support/brokers.js';
import { stopAll } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';
import { until } from '../support/until.js';
import { startService } from '../support/nest/message-app.js';

/** Attacks of senders on a consumer of Kafka, over a broker. Cases that need exact time are in kafka.spec.ts. */

const GROUP = 'orders-server';
const PARTITION = 0;
const PATIENT = { timeoutMs: 20_000 };

const seen: string[] = [];

function saw(message: { id?: string } | null): void {
  seen.push(String(message?.id));
}

@Controller()
class Orders {
  @EventPattern('sent')
  @RateLimit({ rate: 1, period: '1s', key: { param: 'sender' } })
  sent(message: { id: string }): void {
    saw(message);
  }

  @EventPattern('rare')
  @RateLimit({ rate: 1, period: '1h', key: { param: 'sender' } })
  rare(message: { id: string }): void {
    saw(message);
  }

  @EventPattern('odd')
  @RateLimit('plenty')
  @RateLimit('priced')
  odd(message: { id: string }): void {
    saw(message);
  }

  @MessagePattern('asked')
  @RateLimit({ rate: 1, period: '1h', key: { param: 'sender' } })
  asked(message: { id: string }): object {
    saw(message);
    return { id: message.id };
  }

  @MessagePattern('fallen-back')
  @RateLimit({ rate: 1, period: '1h', key: { param: 'sender' } })
  @Degrade({ idempotent: true, level1: false, level2: false, level4: { id: 'default' } })
  fallenBack(message: { id: string }): object {
    saw(message);
    return { id: message.id };
  }
}

const clock = new ManualClock();
const LIMITS: RateLimitModuleInput = {
  clock,
  policies: {
    plenty: { rate: 100_000, key: { param: 'sender' } },
    priced: {
      rate: 100_000,
      key: { param: 'a.b.c' },
      cost: (context) => context.getArgByIndex<{ cost: number }>(0).cost,
      tier: (context) => context.getArgByIndex<{ tier: string }>(0).tier,
    },
  },
};

/** Nest's server, of which a test may see whether its consumer has come to grief. */
class WatchedServer extends ServerKafka {
  readonly crashes: unknown[] = [];
  private joining: Promise<void> | undefined;

  async joined(): Promise<void> {
    await this.joining;
  }

  override async bindEvents(consumer: NonNullable<ServerKafka['consumer']>): Promise<void> {
    consumer.on('consumer.crash', ({ payload }) => this.crashes.push(payload.error));
    this.joining = new Promise((resolve) => consumer.on('consumer.group_join', () => resolve()));
    await super.bindEvents(consumer);
  }
}

describe('senders to Kafka', () => {
  let app: INestApplicationContext;
  let server: WatchedServer;
  let client: ClientKafka;
  let producer: Producer;
  let admin: Admin;

  beforeAll(async () => {
    const brokers = [`127.0.0.1:${(await startKafka()).port}`];
    // The broker answers a fetch when its time is over, not when something comes.
    const options: NonNullable<NestKafkaOptions['options']> = {
      client: { clientId: 'orders', brokers, logLevel: logLevel.NOTHING },
      consumer: { groupId: 'orders', maxWaitTimeInMs: 20 },
      producer: { allowAutoTopicCreation: true },
    };
    server = new WatchedServer(options);
    client = new ClientKafka(options);
    for (const topic of ['asked', 'fallen-back']) client.subscribeToResponseOf(topic);
    const kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING });
    producer = kafka.producer();
    admin = kafka.admin();
    const metadata = { imports: [RateLimitModule.forRoot(LIMITS)], controllers: [Orders] };
    [app] = await Promise.all([
      startService(metadata, 'stand-alone', { strategy: server }),
      client.connect(),
      producer.connect(),
      admin.connect(),
    ]);
    await server.joined();
  }, 60_000);

  afterAll(async () => {
    await Promise.all([client?.close(), producer?.disconnect(), admin?.disconnect()]);
    await app?.close();
    await stopAll();
  });

  beforeEach(() => {
    seen.length = 0;
    clock.advance(3 * 3_600_000);
  });

  afterEach(() => expect(server.crashes).toEqual([]));

  const emit = (topic: string, messages: readonly Pick<Message, 'value' | 'headers'>[]) =>
    producer.send({
      topic,
      messages: messages.map((message) => ({ ...message, partition: PARTITION })),
    });

  const json = (...values: readonly object[]) =>
    values.map((value) => ({ value: JSON.stringify(value) }));

  const ask = (topic: string, data: object): Promise<unknown> =>
    lastValueFrom(client.send<unknown>(topic, data));

  /** Resolves when the group has committed all that there is. */
  const allIsCommitted = (topic: string): Promise<unknown> =>
    until(async () => {
      const [[committed], [last]] = await Promise.all([
        admin.fetchOffsets({ groupId: GROUP, topics: [topic] }),
        admin.fetchTopicOffsets(topic),
      ]);
      const { offset } = committed!.partitions.find(({ partition }) => partition === PARTITION)!;
      return Number(offset) > 0 && offset === last!.high;
    }, PATIENT);

  it('have a limit each, and what is over it is dropped and committed', async () => {
    const dropped = app.get(DroppedEvents).byHandler()['Orders.rare'] ?? 0;
    const events = ['a', 'b', 'a', 'b', 'a'].map((sender, i) => ({ sender, id: `${sender}${i}` }));
    await emit('rare', json(...events));
    await allIsCommitted('rare');
    expect(seen).toEqual(['a0', 'b1']);
    expect(app.get(DroppedEvents).byHandler()['Orders.rare']).toBe(dropped + 3);
  });

  it('get an error for a request that is over it, and what it is over is committed', async () => {
    expect(await ask('asked', { sender: 'a', id: '1' })).toEqual({ id: '1' });
    await expect(ask('asked', { sender: 'a', id: '2' })).rejects.toMatchObject({
      code: 'RATE_LIMITED',
      retryAfterMs: 3_600_000,
    });
    expect(await ask('asked', { sender: 'b', id: '3' })).toEqual({ id: '3' });
    expect(seen).toEqual(['1', '3']);
  });

  it('get what is left for a request of which there is something else', async () => {
    expect(await ask('fallen-back', { sender: 'a', id: '1' })).toEqual({ id: '1' });
    expect(await ask('fallen-back', { sender: 'a', id: '2' })).toEqual({ id: 'default' });
  });

  it('wait in place for tokens', async () => {
    await emit('sent', json({ sender: 'w', id: 'w0' }, { sender: 'w', id: 'w1' }));
    await until(() => seen.length === 1 && clock.pending > 0, PATIENT);
    await clock.advanceAsync(900);
    expect(seen).toEqual(['w0']);
    await until(async () => {
      await clock.advanceAsync(100);
      return seen.length === 2;
    }, PATIENT);
    await allIsCommitted('sent');
  });

  it('hold others up for no longer than maxWait, however much they send', async () => {
    const flood = Array.from({ length: 500 }, (_, i) => ({ sender: 'mallory', id: `m${i}` }));
    const startMicros = clock.now();
    await emit('sent', json(...flood, { sender: 'honest', id: 'honest' }));
    await until(async () => {
      // Time passes while an event waits for it, and only then.
      const before = seen.length;
      await new Promise(setImmediate);
      if (seen.length === before) await clock.advanceAsync(50);
      return seen.includes('honest');
    }, PATIENT);
    expect((clock.now() - startMicros) / 1e6).toBeLessThan(20);
    expect(seen.filter((id) => id.startsWith('m')).length).toBeLessThan(10);
    await allIsCommitted('sent');
  });

  it('neither stop a consumer nor make it read again, whatever they send', async () => {
    const deep = `${'['.repeat(10_000)}${']'.repeat(10_000)}`;
    const texts = [
      'null',
      '""',
      '[]',
      '[[],null,{}]',
      '17',
      'true',
      '{',
      deep,
      `{"sender":${deep}}`,
      '{"sender":null,"cost":null,"tier":{}}',
      '{"sender":{"then":1},"then":{"a":1},"cost":"NaN","tier":"__proto__"}',
      '{"__proto__":{"sender":"x"},"constructor":{"prototype":{"polluted":1}},"cost":1e999}',
      '{"sender":["a","b"],"cost":-1}',
      '{"sender":"x","cost":1e9,"a":{"b":{"c":{}}}}',
      `{"sender":"${'x'.repeat(200_000)}"}`,
    ];
    const bytes = [Buffer.from([0, 1, 2, 255, 254]), Buffer.alloc(0), null];
    const headers = { kafka_correlationId: Buffer.from([255]), '': '', constructor: 'x' };
    await emit('odd', [
      ...texts.map((value) => ({ value })),
      ...bytes.map((value) => ({ value })),
      { value: '{"sender":1}', headers },
      ...json({ sender: 'last', id: 'last', cost: 1 }),
    ]);
    await allIsCommitted('odd');
    expect(seen.filter((id) => id === 'last')).toEqual(['last']);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});
