import {
  ClientProxyFactory,
  MqttRecordBuilder,
  NatsRecordBuilder,
  RmqRecordBuilder,
  Transport,
  type ClientOptions,
  type ClientProxy,
  type MicroserviceOptions,
} from '@nestjs/microservices';
import { headers as natsHeaders } from '@nats-io/transport-node';
import { firstValueFrom, lastValueFrom } from 'rxjs';
import { startMosquitto, startNats, startRabbitmq } from '../brokers.js';
import { freePort } from '../free-port.js';
import { startRedis } from '../index.js';
import { kafkaWire } from '../../transports/kafka-double.js';

type Headers = Readonly<Record<string, string>>;

/** Sends messages to a microservice, with whatever the transport has for headers. */
export interface MessageClient {
  send(pattern: string | object, data: object, headers?: Headers): Promise<unknown>;
  emit(pattern: string, data: object, headers?: Headers): Promise<unknown>;
  close(): Promise<void>;
}

/** A broker, or a port, between a microservice and its clients. */
export interface Wire {
  readonly hasHeaders: boolean;
  /** How a new microservice is to listen. */
  serve(): MicroserviceOptions;
  /** A client of the microservice that listens now. */
  connect(): Promise<MessageClient>;
}

/** Every transport that carries messages, with a real broker where there is one to be had. */
export const WIRES: Readonly<Record<string, () => Promise<Wire>>> = {
  async tcp() {
    const options = { host: '127.0.0.1', port: await freePort() };
    return wire({ transport: Transport.TCP, options });
  },
  async redis() {
    const { host, port } = await startRedis();
    return wire({ transport: Transport.REDIS, options: { host, port } });
  },
  async nats() {
    const { port } = await startNats();
    return wire(
      { transport: Transport.NATS, options: { servers: [`nats://127.0.0.1:${port}`] } },
      (data, values) => {
        const headers = natsHeaders();
        for (const [name, value] of Object.entries(values)) headers.set(name, value);
        return new NatsRecordBuilder(data).setHeaders(headers).build();
      },
    );
  },
  async mqtt() {
    const { port } = await startMosquitto();
    return wire(
      {
        transport: Transport.MQTT,
        options: { url: `mqtt://127.0.0.1:${port}`, protocolVersion: 5 },
      },
      (data, userProperties) =>
        new MqttRecordBuilder(data)
          .setProperties({ userProperties: { ...userProperties } })
          .build(),
    );
  },
  async rmq() {
    const { port } = await startRabbitmq();
    return rmqWire(port, { noAck: true });
  },
  kafka: kafkaWire,
};

let queues = 0;

/** A queue of its own for each microservice. */
export function rmqWire(
  port: number,
  server: { readonly noAck: boolean; readonly queueOptions?: object },
): Wire {
  const { queueOptions = {} } = server;
  let queue = '';
  const optionsOf = () => ({ urls: [`amqp://127.0.0.1:${port}`], queue, queueOptions });
  return {
    hasHeaders: true,
    serve() {
      queue = `weir-${queues++}`;
      // A message that nobody acknowledges shows at once: no other one comes.
      const options = { ...optionsOf(), noAck: server.noAck, prefetchCount: 1 };
      return { transport: Transport.RMQ, options };
    },
    connect: () =>
      clientOf({ transport: Transport.RMQ, options: optionsOf() }, (data, headers) =>
        new RmqRecordBuilder(data).setOptions({ headers: { ...headers } }).build(),
      ),
  };
}

type Enclose = (data: object, headers: Headers) => object;

function wire(options: MicroserviceOptions & ClientOptions, enclose?: Enclose): Wire {
  return {
    hasHeaders: enclose !== undefined,
    serve: () => options,
    connect: () => clientOf(options, enclose),
  };
}

async function clientOf(options: ClientOptions, enclose?: Enclose): Promise<MessageClient> {
  const client: ClientProxy = ClientProxyFactory.create(options);
  client.on('error' as never, (() => undefined) as never);
  await client.connect();
  const write = (data: object, headers?: Headers): object =>
    headers === undefined || enclose === undefined ? data : enclose(data, headers);
  return {
    send: (pattern, data, headers) => firstValueFrom(client.send(pattern, write(data, headers))),
    emit: (pattern, data, headers) =>
      lastValueFrom(client.emit(pattern, write(data, headers)), { defaultValue: undefined }),
    close: async () => {
      await client.close();
    },
  };
}
