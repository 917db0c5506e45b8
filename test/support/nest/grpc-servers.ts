import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { root } from '../../setup/ensure-built.js';
import { freePort } from '../free-port.js';
import { exited, hasExited, spawnOwned } from '../processes.js';
import { until } from '../until.js';
import { GrpcClients } from './grpc-clients.js';
import { directoryOf, type NestMajor } from './nest-majors.js';

export const PROTO = join(root, 'test/support/nest/grpc-app/shop.proto');
const MAIN = 'test/support/nest/grpc-app/main.js';

export interface GrpcServerOptions {
  readonly kind: 'memory' | 'quota' | 'applied' | 'redis';
  readonly hybrid?: boolean;
  readonly redisUrl?: string;
}

/** A process of test/support/nest/grpc-app, and clients for it. */
export class GrpcServer {
  private output = '';

  private constructor(
    private readonly child: ChildProcess,
    readonly clients: GrpcClients,
  ) {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    }
  }

  static async start(major: NestMajor, options: GrpcServerOptions): Promise<GrpcServer> {
    const { kind, hybrid = false, redisUrl } = options;
    const port = String(await freePort());
    const cwd = directoryOf(major);
    const env = { ...process.env, KIND: kind, PORT: port, PROTO, REDIS_URL: redisUrl };
    const child = spawnOwned(process.execPath, [MAIN], {
      cwd,
      env: { ...env, HYBRID: hybrid ? '1' : undefined },
    });
    const server = new GrpcServer(child, new GrpcClients(`127.0.0.1:${port}`, PROTO));
    await until(() => hasExited(child) || server.output.includes('ready\n'), {
      timeoutMs: 20_000,
      what: 'the server to listen',
    });
    if (hasExited(child)) throw new Error(`the server did not start:\n${server.output}`);
    return server;
  }

  get alive(): boolean {
    return !hasExited(this.child);
  }

  /** The output of the server since it was ready. */
  get written(): string {
    return this.output.slice(this.output.indexOf('ready\n') + 'ready\n'.length);
  }

  async stop(): Promise<void> {
    this.clients.close();
    this.child.kill('SIGKILL');
    await exited(this.child);
  }
}
