import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Figure } from './figures.js';
import {
  type MonitorReply,
  type MonitorRequest,
  type NodeOptions,
  type Turns,
} from './process-main.js';

const MAIN = fileURLToPath(new URL('./process-main.js', import.meta.url));

/** One process, so that its processor time, its heap and its turns are nobody else's. */
export class MonitorProcess {
  private readonly child: ChildProcess = fork(MAIN, {
    execArgv: ['--expose-gc'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });

  static async figures(figure: Figure): Promise<Record<string, readonly number[]>> {
    const process = new MonitorProcess();
    try {
      const reply = await process.ask({ figure });
      if (typeof reply === 'object' && 'figures' in reply) return reply.figures;
      throw new Error(`${figure}: ${JSON.stringify(reply)}`);
    } finally {
      await process.stop();
    }
  }

  static async serving(options: NodeOptions): Promise<MonitorProcess> {
    const process = new MonitorProcess();
    const reply = await process.ask({ serve: options });
    if (reply === 'done') return process;
    await process.stop();
    throw new Error(`${options.nodeId}: ${JSON.stringify(reply)}`);
  }

  async begin(): Promise<void> {
    await this.ask('begin');
  }

  async turns(): Promise<Turns> {
    const reply = await this.ask('turns');
    if (typeof reply === 'object' && 'turns' in reply) return reply.turns;
    throw new Error(JSON.stringify(reply));
  }

  async stop(): Promise<void> {
    const exited = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exited;
  }

  private async ask(request: MonitorRequest): Promise<MonitorReply> {
    const replied = once(this.child, 'message') as Promise<[MonitorReply]>;
    this.child.send(request);
    return (await replied)[0];
  }
}
