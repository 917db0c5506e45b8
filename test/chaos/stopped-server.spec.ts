import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import {
  type OverloadReply,
  type OverloadRequest,
} from '../../bench/support/overload/server-main.js';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { spawnOwned, stopAll } from '../support/processes.js';
import { until } from '../support/until.js';
import { note } from './note.js';

const MAIN = join(root, 'build/bench/support/overload/server-main.js');
/** More than two seconds of work of 4 ms each, all of which wait when the server goes on. */
const CALLERS = 600;
const STOP_MS = 2000;
/** All of it until everybody has an answer; to serve them would take 2,400. */
const MOST_WORK_MS = 1000;
/** The longest wait of the line, and how many answers fit into it. */
const INTERVAL_MS = 200;
const ANSWERS_IN_INTERVAL = INTERVAL_MS / 4;

/** A caller that keeps its connection. */
class Caller {
  answeredAt = 0;
  status = '';

  private constructor(private readonly socket: Socket) {
    socket.on('data', (chunk: Buffer) => {
      this.status = chunk.toString('latin1', 9, 12);
      this.answeredAt = performance.now();
    });
  }

  static async at(url: string): Promise<Caller> {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    await once(socket, 'connect');
    return new Caller(socket);
  }

  get isWaiting(): boolean {
    return this.answeredAt === Infinity;
  }

  ask(tier: string): void {
    this.status = '';
    this.answeredAt = Infinity;
    this.socket.write(`GET / HTTP/1.1\r\nHost: x\r\nx-tier: ${tier}\r\n\r\n`);
  }

  leave(): void {
    this.socket.destroy();
  }
}

const TIERS = ['S', 'A', 'B', 'C', 'C'];

describe('a server with the line that stood still for two seconds under load', () => {
  beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
  afterAll(stopAll);

  it('does not work off what has waited meanwhile, but refuses it, and goes on', async () => {
    const child = spawnOwned(process.execPath, [MAIN], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const order = async (request: OverloadRequest): Promise<OverloadReply> => {
      const replied = once(child, 'message') as Promise<[OverloadReply]>;
      child.send(request);
      return (await replied)[0];
    };
    const cpuMs = async (): Promise<number> => {
      const usage = await order('usage');
      if (!('cpuMicros' in usage)) throw new Error(JSON.stringify(usage));
      return usage.cpuMicros / 1000;
    };
    const reply = await order({ serve: { platform: 'fastify', law: 'line' } });
    if (!('url' in reply)) throw new Error(JSON.stringify(reply));
    const callers = await Promise.all(Array.from({ length: CALLERS }, () => Caller.at(reply.url)));
    // Twice what it can serve, so that it stands when it is stopped.
    for (let i = 0; i < 250; i++) {
      callers[i]!.ask(TIERS[i % TIERS.length]!);
      await pause(2);
    }
    const usedBefore = await cpuMs();
    child.kill('SIGSTOP');
    const asked = callers.filter(({ isWaiting }) => !isWaiting);
    for (const [i, one] of asked.entries()) one.ask(TIERS[i % TIERS.length]!);
    await pause(STOP_MS);
    child.kill('SIGCONT');
    const goesOnAt = performance.now();
    await until(() => callers.every(({ isWaiting }) => !isWaiting));
    const usedMs = (await cpuMs()) - usedBefore;
    const lastMs = Math.max(...callers.map(({ answeredAt }) => answeredAt - goesOnAt));
    const served = asked.filter(({ status }) => status === '200');
    const refused = asked.filter(({ status }) => status === '503');
    note({ asked: asked.length, served: served.length, lastMs, usedMs });
    expect(asked.length).toBeGreaterThan(CALLERS / 2);
    expect(served.length + refused.length).toBe(asked.length);
    // The line's own wait, one slice, and what it was at when it was stopped; without it all were served.
    expect(served.length).toBeLessThanOrEqual(ANSWERS_IN_INTERVAL + 20);
    // By its own work and not by the clock: a busy machine lets it work later.
    expect(usedMs).toBeLessThan(MOST_WORK_MS);
    // It is itself again.
    const after = callers.slice(0, 20);
    for (const one of after) {
      one.ask('S');
      await until(() => !one.isWaiting, { intervalMs: 1 });
    }
    expect(after.map(({ status }) => status)).toEqual(after.map(() => '200'));
    for (const one of callers) one.leave();
  });
});
