import type { ChildProcess } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../setup/ensure-built.js';
import { freePort } from '../support/free-port.js';
import { exited, hasExited, makeTempDir, spawnOwned } from '../support/processes.js';
import { until } from '../support/until.js';
import { GrpcClients } from './grpc-clients.js';

export const NEST_MAJORS = [12, 11] as const;
export type NestMajor = (typeof NEST_MAJORS)[number];

export const PROTO = join(root, 'test/nest/grpc-app/shop.proto');
const MAIN = 'test/nest/grpc-app/main.js';

export interface GrpcServerOptions {
  readonly kind: 'memory' | 'quota' | 'applied' | 'redis';
  readonly hybrid?: boolean;
  readonly redisUrl?: string;
}

/** A process of test/nest/grpc-app, and clients for it. */
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
    const cwd = major === 12 ? join(root, 'build') : directoryOnNest11();
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

  /** What it wrote since it was ready. */
  get written(): string {
    return this.output.slice(this.output.indexOf('ready\n') + 'ready\n'.length);
  }

  async stop(): Promise<void> {
    this.clients.close();
    this.child.kill('SIGKILL');
    await exited(this.child);
  }
}

let onNest11: string | undefined;

/**
 * The built package and the compiled app in a directory where `@nestjs/*` is Nest 11. The package is
 * copied: Node looks for the neighbours of what a link points to, and there it is Nest 12.
 */
function directoryOnNest11(): string {
  if (onNest11 !== undefined) return onNest11;
  const dir = makeTempDir();
  const modules = join(dir, 'node_modules');
  for (const part of ['package.json', 'dist', 'dist-cjs', 'lua']) {
    cpSync(join(root, part), join(modules, 'nestjs-weir', part), { recursive: true });
  }
  for (const scope of ['@nestjs', '@grpc', 'rxjs', 'reflect-metadata']) {
    link(join(root, 'test/nest11/node_modules', scope), join(modules, scope));
  }
  link(join(root, 'node_modules/ioredis'), join(modules, 'ioredis'));
  cpSync(join(root, 'build/test'), join(dir, 'test'), { recursive: true });
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  return (onNest11 = dir);
}

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path, 'dir');
}
