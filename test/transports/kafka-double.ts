import { ServerKafka, KafkaHeaders, KafkaResponseDeserializer } from '@nestjs/microservices';
import { type MessageClient, type Wire } from '../support/nest/message-wires.js';

interface KafkaMessage {
  readonly value: Buffer | string | null;
  readonly headers: Record<string, Buffer | string>;
}

type EachMessage = (payload: {
  topic: string;
  partition: number;
  message: KafkaMessage & { key: null };
  heartbeat: () => Promise<void>;
  pause: () => () => void;
}) => Promise<void>;

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/**
 * kafkajs without Kafka: what Nest's server asks of its client, and a producer that looks for
 * whoever waits for the reply. As with kafkajs, a message is done with when `eachMessage` resolves,
 * and would come again when it rejects.
 */
export class KafkaDouble extends ServerKafka {
  private eachMessage: EachMessage | undefined;
  private readonly waiting = new Map<string, Waiting>();
  private sent = 0;
  heartbeats = 0;
  /** Messages whose offset was not committed. */
  readonly refused: unknown[] = [];

  constructor() {
    super({});
  }

  override async createClient<T = unknown>(): Promise<T> {
    const common = {
      events: {},
      on: () => undefined,
      connect: async () => undefined,
      disconnect: async () => undefined,
    };
    const consumer = {
      ...common,
      subscribe: async () => undefined,
      run: async ({ eachMessage }: { eachMessage: EachMessage }) => {
        this.eachMessage = eachMessage;
      },
    };
    const producer = {
      ...common,
      send: async ({ messages }: { messages: KafkaMessage[] }) => messages.forEach(this.reply),
    };
    return { consumer: () => consumer, producer: () => producer } as T;
  }

  request(topic: string, data: object, headers: Record<string, string>): Promise<unknown> {
    const id = `c-${this.sent++}`;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      void this.deliver(topic, data, {
        ...headers,
        [KafkaHeaders.CORRELATION_ID]: id,
        [KafkaHeaders.REPLY_TOPIC]: `${topic}.reply`,
      });
    });
  }

  /** Resolves when the offset is committed, or would be asked for again. */
  async deliver(
    topic: string,
    data: object,
    headers: Record<string, string>,
    partition = 0,
  ): Promise<void> {
    const buffers = Object.entries(headers).map(([name, text]) => [name, Buffer.from(text)]);
    try {
      await this.eachMessage!({
        topic,
        partition,
        message: {
          key: null,
          value: Buffer.from(JSON.stringify(data)),
          headers: Object.fromEntries(buffers) as Record<string, Buffer>,
        },
        heartbeat: async () => {
          this.heartbeats++;
        },
        pause: () => () => undefined,
      });
    } catch (error) {
      this.refused.push(error);
    }
  }

  private readonly reply = (message: KafkaMessage): void => {
    const parsed = this.parser!.parse<{ headers: Record<string, string> }>(message);
    const reply: unknown = new KafkaResponseDeserializer().deserialize(parsed);
    const { id, err, response } = reply as { id: string; err?: unknown; response?: unknown };
    const waiting = this.waiting.get(id);
    this.waiting.delete(id);
    if (err !== undefined) waiting?.reject(err);
    else waiting?.resolve(response);
  };
}

/** `made` is called with each server, for tests that look into it. */
export async function kafkaWire(made: (server: KafkaDouble) => void = () => {}): Promise<Wire> {
  let server: KafkaDouble;
  return {
    hasHeaders: true,
    serve: () => {
      made((server = new KafkaDouble()));
      return { strategy: server };
    },
    connect: async (): Promise<MessageClient> => ({
      send: (topic, data, headers = {}) => server.request(topic as string, data, headers),
      emit: (topic, data, headers = {}) => server.deliver(topic, data, headers),
      close: async () => undefined,
    }),
  };
}
