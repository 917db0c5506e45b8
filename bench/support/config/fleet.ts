import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type MemberOrder, type MemberReport } from './protocol.js';

const MAIN = fileURLToPath(new URL('./member-main.js', import.meta.url));
const PATIENCE_MS = 10_000;

/** Something that was told to the fleet, until all have it. */
interface Spreading {
  readonly number: number;
  begun?: number;
  readonly got: Map<number, number>;
  readonly done: (micros: number) => void;
  readonly failed: (error: Error) => void;
}

/** Processes that are told of changes, by the first of them. */
export class ConfigFleet {
  private spreading: Spreading | undefined;
  private number = 0;

  private constructor(private readonly members: readonly ChildProcess[]) {
    members.forEach((member, index) => this.listen(member, index));
  }

  static async start(url: string, size: number): Promise<ConfigFleet> {
    const children: ChildProcess[] = [];
    for (let n = 0; n < size; n++) {
      const child = fork(MAIN, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
      children.push(child);
      const opened = once(child, 'message') as Promise<[MemberReport]>;
      child.send({ order: 'open', setup: { url, nodeId: `node-${n}` } } satisfies MemberOrder);
      const [report] = await opened;
      if (report.report !== 'opened') throw new Error(JSON.stringify(report));
    }
    return new ConfigFleet(children);
  }

  /** Microseconds from the call to the last of all having it. */
  spread(order: 'publish' | 'update'): Promise<number> {
    const number = ++this.number;
    return new Promise<number>((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`${order} ${number} is lost`)), PATIENCE_MS);
      const done = (micros: number): void => {
        clearTimeout(late);
        resolve(micros);
      };
      this.spreading = { number, got: new Map(), done, failed: reject };
      this.members[0]!.send({ order, number } satisfies MemberOrder);
    });
  }

  async stop(): Promise<void> {
    for (const child of this.members) {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    }
  }

  private listen(child: ChildProcess, index: number): void {
    child.on('message', (message) => {
      const report = message as MemberReport;
      if (report.report === 'failed') this.spreading?.failed(new Error(report.reason));
      else if (report.report !== 'opened') this.heard(report, index);
    });
  }

  private heard(report: Extract<MemberReport, { number: number }>, index: number): void {
    const { spreading } = this;
    if (spreading?.number !== report.number) return;
    const { got } = spreading;
    if (report.report === 'begun') spreading.begun = report.atMicros;
    else got.set(index, report.atMicros);
    if (spreading.begun === undefined || got.size < this.members.length) return;
    spreading.done(Math.max(...got.values()) - spreading.begun);
  }
}
