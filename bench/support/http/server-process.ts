import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type ServerReply, type ServerRequest } from './server-main.js';
import { type ServerOptions } from './server.js';

const MAIN = fileURLToPath(new URL('./server-main.js', import.meta.url));

/**
 * What V8 does beside the program it does in its turn: threads that share a collection also wait for
 * each other, and on a machine with few cores that is most of what two runs differ by.
 */
const ONE_THREAD = ['--single-threaded-gc', '--no-concurrent-recompilation'];

/** A server in a process of its own, so that its CPU time is nobody else's. */
export class ServerProcess {
  private constructor(
    private readonly child: ChildProcess,
    public url: string,
  ) {}

  static async start(options: ServerOptions): Promise<ServerProcess> {
    const child = fork(MAIN, {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execArgv: ONE_THREAD,
    });
    const server = new ServerProcess(child, '');
    const reply = await server.ask({ serve: options });
    if (!('url' in reply)) throw new Error(`${options.variant}: ${JSON.stringify(reply)}`);
    server.url = reply.url;
    return server;
  }

  /** CPU time used so far. Nothing is collected first: V8 would throw its optimised code away. */
  async cpuMicros(): Promise<number> {
    const reply = await this.ask('cpu');
    return 'cpuMicros' in reply ? reply.cpuMicros : NaN;
  }

  async stop(): Promise<void> {
    const exited = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exited;
  }

  private async ask(request: ServerRequest): Promise<ServerReply> {
    const replied = once(this.child, 'message') as Promise<[ServerReply]>;
    this.child.send(request);
    return (await replied)[0];
  }
}
