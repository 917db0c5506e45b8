import { type ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Transport, type MicroserviceOptions } from '@nestjs/microservices';
import { GrpcClients } from '../support/nest/grpc-clients.js';
import { directoryOf, type NestMajor } from '../support/nest/nest-majors.js';
import { WIRES, type MessageClient, type Wire } from '../support/nest/message-wires.js';
import { freePort } from '../support/free-port.js';
import { exited, hasExited, makeTempDir, spawnOwned } from '../support/processes.js';
import { until } from '../support/until.js';
import { GRPC_KINDS, PACKAGE, protoText } from './app/proto.js';
import { callGraphql, callGrpc, callHttp, callMessages, type Call } from './clients.js';
import { callSocket, connectPlain, connectSocketIo } from './socket-clients.js';

const MAIN = 'test/e2e/app/main.js';
const HTTP = ['express', 'fastify'] as const;
const GRPC = GRPC_KINDS.map((kind) => `gRPC ${kind}`);
const BROKERS = ['redis', 'nats', 'mqtt', 'rmq'] as const;
/** The transports that have no package of Nest 11 beside the tests. */
const ONLY_ON_12 = ['socket.io', 'ws', 'graphql'] as const;

/** Every way to call an application, on each Nest. */
export const TRANSPORTS: Readonly<Record<NestMajor, readonly string[]>> = {
  12: [...HTTP, ...GRPC, 'tcp', ...BROKERS, ...ONLY_ON_12],
  11: [...HTTP, ...GRPC, 'tcp'],
};

/** Those that have events. */
export const MESSAGES: Readonly<Record<NestMajor, readonly string[]>> = {
  12: ['tcp', ...BROKERS],
  11: ['tcp'],
};

/** Those whose requests have one answer, which may be another than their handler's. */
export const WITH_FALLBACKS: Readonly<Record<NestMajor, readonly string[]>> = {
  12: [...HTTP, 'gRPC Unary', ...MESSAGES[12]],
  11: [...HTTP, 'gRPC Unary', ...MESSAGES[11]],
};

/** One process with an application on each transport, and what calls them. */
export class Host {
  private readonly calls = new Map<string, Call>();
  private readonly clients = new Map<string, MessageClient>();
  private readonly toClose: (() => unknown)[] = [];
  private output = '';

  private constructor(private readonly child: ChildProcess) {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    }
  }

  static async start(major: NestMajor): Promise<Host> {
    const wires = await startWires(MESSAGES[major]);
    const grpc = await grpcOptions();
    const apps: Record<string, object> = { grpc };
    for (const name of [...HTTP, ...(major === 12 ? ONLY_ON_12 : [])]) apps[name] = {};
    for (const [name, wire] of wires) apps[name] = wire.serve();
    const env = { ...process.env, APPS: JSON.stringify(apps) };
    const host = new Host(spawnOwned(process.execPath, [MAIN], { cwd: directoryOf(major), env }));
    host.callUrls(await host.ready());
    host.callGrpc(grpc.options);
    for (const [name, wire] of wires) await host.callWire(name, wire);
    return host;
  }

  /** The output of the process, but for the line that it was ready. */
  get written(): string {
    return this.output.replace(READY, '');
  }

  callOf(transport: string): Call {
    return this.calls.get(transport)!;
  }

  clientOf(wire: string): MessageClient {
    return this.clients.get(wire)!;
  }

  async stop(): Promise<void> {
    for (const close of this.toClose) await close();
    this.child.kill('SIGKILL');
    await exited(this.child);
  }

  private async ready(): Promise<Record<string, string>> {
    await until(() => hasExited(this.child) || READY.test(this.output), {
      timeoutMs: 60_000,
      what: 'the applications to listen',
    });
    const [, urls] = READY.exec(this.output) ?? [];
    if (urls === undefined) throw new Error(`the applications did not start:\n${this.output}`);
    return JSON.parse(urls) as Record<string, string>;
  }

  private callUrls({ express, fastify, graphql, ...sockets }: Record<string, string>): void {
    this.calls.set('express', callHttp(express!));
    this.calls.set('fastify', callHttp(fastify!));
    this.calls.set('graphql', callGraphql(graphql!));
    const connect = { 'socket.io': connectSocketIo, ws: connectPlain };
    for (const name of ['socket.io', 'ws'] as const) {
      const { call, close } = callSocket(() => connect[name](sockets[name]!));
      this.calls.set(name, call);
      this.toClose.push(close);
    }
  }

  private callGrpc({ url, protoPath }: GrpcAddress): void {
    const clients = new GrpcClients(url, protoPath);
    this.toClose.push(() => clients.close());
    GRPC_KINDS.forEach((kind, i) => this.calls.set(GRPC[i]!, callGrpc(clients, kind)));
  }

  private async callWire(name: string, wire: Wire): Promise<void> {
    const client = await wire.connect();
    this.toClose.push(() => client.close());
    // Brokers may take a subscription after the microservice says that it listens.
    await until(() => answersSoon(client), {
      timeoutMs: 20_000,
      what: `the microservice on ${name} to answer`,
    });
    this.clients.set(name, client);
    this.calls.set(name, callMessages(client));
  }
}

const READY = /^ready (.*)\n/m;

/** All at once: one of the brokers takes seven seconds. */
async function startWires(names: readonly string[]): Promise<Map<string, Wire>> {
  const wires = await Promise.all(names.map((name) => WIRES[name]!()));
  return new Map(names.map((name, i) => [name, wires[i]!]));
}

function answersSoon(client: MessageClient): Promise<unknown> {
  const never = new Promise((resolve) => setTimeout(resolve, 250, false).unref());
  return Promise.race([client.send('asked', { key: 'first' }), never]);
}

interface GrpcAddress {
  readonly url: string;
  readonly protoPath: string;
}

async function grpcOptions(): Promise<MicroserviceOptions & { options: GrpcAddress }> {
  const protoPath = join(makeTempDir(), 'every-route.proto');
  writeFileSync(protoPath, protoText());
  const url = `127.0.0.1:${await freePort()}`;
  return { transport: Transport.GRPC, options: { package: PACKAGE, protoPath, url } };
}
