import {
  credentials,
  loadPackageDefinition,
  Metadata,
  type ClientOptions,
  type StatusObject,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';

export interface GrpcMessage {
  readonly name?: string;
  readonly sku?: string;
  readonly number?: number;
}

export interface GrpcReply {
  readonly text: string;
  readonly numbers: readonly number[];
}

/** How a call ended, and what it brought. */
export interface Outcome {
  readonly code: number;
  readonly details: string;
  readonly replies: readonly GrpcReply[];
  readonly headers: Metadata;
  readonly trailers: Metadata;
}

/** A call of grpc-js, of any of the four kinds. */
export interface AnyCall {
  on(event: 'data', listener: (reply: GrpcReply) => void): this;
  on(event: 'metadata', listener: (metadata: Metadata) => void): this;
  on(event: 'status', listener: (status: StatusObject) => void): this;
  on(event: 'error', listener: (error: Error) => void): this;
  write(message: GrpcMessage): void;
  end(): void;
  cancel(): void;
}

interface Method {
  (...args: unknown[]): AnyCall;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
}

type Client = Record<string, Method> & { close(): void };

/** Clients of all services of a proto file, by what is called: `Shop.Named`. */
export class GrpcClients {
  private readonly clients = new Map<string, Client>();
  private readonly services: Record<string, new (...args: unknown[]) => Client>;

  constructor(
    private readonly url: string,
    protoPath: string,
    private readonly options: ClientOptions = {},
  ) {
    const definition = loadSync(protoPath, { longs: String, defaults: true, arrays: true });
    const { weir } = loadPackageDefinition(definition) as unknown as {
      weir: { test: Record<string, new (...args: unknown[]) => Client> };
    };
    this.services = weir.test;
  }

  /** Makes a call with these messages and waits for its end. */
  async call(
    what: string,
    messages: readonly GrpcMessage[] = [{}],
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Outcome> {
    const started = this.start(what, messages[0], headers);
    if (started.method.requestStream) {
      for (const message of messages) started.call.write(message);
      started.call.end();
    }
    return started.outcome;
  }

  /** The same for a stream, one message in each turn of the event loop. */
  async trickle(what: string, messages: readonly GrpcMessage[]): Promise<Outcome> {
    const { call, outcome } = this.start(what);
    for (const message of messages) {
      call.write(message);
      await new Promise((resolve) => setImmediate(resolve));
    }
    call.end();
    return outcome;
  }

  /** The codes of so many calls, one after the other. */
  async codes(count: number, what: string, ...rest: [GrpcMessage[]?]): Promise<number[]> {
    const codes: number[] = [];
    for (let i = 0; i < count; i++) codes.push((await this.call(what, ...rest)).code);
    return codes;
  }

  /** Begins a call; a stream of requests is the caller's to write and to end. */
  start(what: string, message: GrpcMessage = {}, headers: Readonly<Record<string, string>> = {}) {
    const [service, name] = what.split('.') as [string, string];
    const client = this.clientOf(service);
    const method = client[name]!;
    const metadata = new Metadata();
    for (const [key, value] of Object.entries(headers)) metadata.set(key, value);
    const replies: GrpcReply[] = [];
    const keep = (_error: unknown, reply?: GrpcReply): void => void (reply && replies.push(reply));
    const call = method.call(
      client,
      ...(method.requestStream ? [] : [message]),
      metadata,
      { deadline: Date.now() + 20_000 },
      ...(method.responseStream ? [] : [keep]),
    );
    return { call, method, outcome: outcomeOf(call, method, replies) };
  }

  close(): void {
    for (const client of this.clients.values()) client.close();
  }

  private clientOf(service: string): Client {
    let client = this.clients.get(service);
    if (client === undefined) {
      client = new this.services[service]!(this.url, credentials.createInsecure(), this.options);
      this.clients.set(service, client);
    }
    return client;
  }
}

function outcomeOf(call: AnyCall, method: Method, replies: GrpcReply[]): Promise<Outcome> {
  let headers = new Metadata();
  if (method.responseStream) call.on('data', (reply) => replies.push(reply));
  call.on('metadata', (received) => (headers = received));
  call.on('error', () => undefined);
  return new Promise((resolve) => {
    call.on('status', ({ code, details, metadata }) =>
      resolve({ code, details, replies, headers, trailers: metadata }),
    );
  });
}
