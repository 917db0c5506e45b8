import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type ServerReply, type ServerRequest } from './server-main.js';
import { type ServerOptions } from './server.js';

const MAIN = fileURLToPath(new URL('./server-main.js', import.meta.url));

/** The program and the flags that a server runs with. */
export interface Launch {
  /** Node, or a program that runs it. */
  readonly execPath?: string;
  readonly execArgv?: readonly string[];
  /** The factor by which its clocks are slower than those of the machine. */
  readonly slower?: number;
}

/** A server in a process of its own, so that what it uses is nobody else's. */
export class ServerProcess {
  private constructor(
    private readonly child: ChildProcess,
    public url: string,
  ) {}

  static async start(options: ServerOptions, launch: Launch = {}): Promise<ServerProcess> {
    const { execPath = process.execPath, execArgv = [], slower = 1 } = launch;
    const child = fork(MAIN, {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execPath,
      execArgv: [...execArgv],
    });
    const server = new ServerProcess(child, '');
    const reply = await server.ask({ serve: options, slower });
    if (!('url' in reply)) throw new Error(`${options.variant}: ${JSON.stringify(reply)}`);
    server.url = reply.url;
    return server;
  }

  get pid(): number {
    return this.child.pid!;
  }

  /** CPU time used so far. Nothing is collected first: V8 would throw its optimised code away. */
  async cpuMicros(): Promise<number> {
    const reply = await this.ask('cpu');
    return 'cpuMicros' in reply ? reply.cpuMicros : NaN;
  }

  /** Ends gently: valgrind has pipes to remove. */
  async stop(): Promise<void> {
    const exited = once(this.child, 'exit');
    this.child.kill('SIGTERM');
    await exited;
  }

  private async ask(request: ServerRequest): Promise<ServerReply> {
    const replied = once(this.child, 'message') as Promise<[ServerReply]>;
    this.child.send(request);
    return (await replied)[0];
  }
}
