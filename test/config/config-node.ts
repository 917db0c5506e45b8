import { type ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { type ConfigLayer } from 'nestjs-weir';
import { root } from '../setup/ensure-built.js';
import { hasExited, spawnOwned } from '../support/processes.js';
import { until } from '../support/until.js';
import {
  type NodeOrder,
  type NodeReport,
  type NodeSetup,
  type NodeTotals,
} from './process/protocol.js';

const MAIN = join(root, 'build/test/config/process/main.js');
const PATIENCE_MS = 60_000;

type Settled = Extract<NodeReport, { report: 'updated' | 'refused' }>;

/** A process of the fleet, as seen from the test. */
export class ConfigNode {
  /** What it has applied, in order. */
  readonly applied: { readonly revision: number; readonly step: number }[] = [];
  /** When requests were asked and answered that passed the shared policy. */
  readonly spans: { readonly from: number; readonly to: number }[] = [];
  readonly warnings: string[] = [];
  readonly errors: string[] = [];
  private readonly settled = new Map<number, Settled>();
  private isOpen = false;
  private totals: NodeTotals | undefined;
  private broken = '';
  private written = '';

  private constructor(private readonly child: ChildProcess) {
    child.on('message', (report) => this.hear(report as NodeReport));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.written += text));
  }

  static async start(setup: NodeSetup): Promise<ConfigNode> {
    const child = spawnOwned(process.execPath, [MAIN], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      serialization: 'advanced',
    });
    const node = new ConfigNode(child);
    node.order({ order: 'open', setup });
    await node.until(() => node.isOpen, `${setup.nodeId} to start`);
    return node;
  }

  get revision(): number {
    return this.applied.at(-1)?.revision ?? 0;
  }

  get step(): number | undefined {
    return this.applied.at(-1)?.step;
  }

  async update(patch: ConfigLayer, number: number): Promise<Settled> {
    this.order({ order: 'update', patch, number });
    return this.until(() => this.settled.get(number), `update ${number}`);
  }

  async close(): Promise<NodeTotals> {
    this.order({ order: 'close' });
    const totals = await this.until(() => this.totals, 'a process to close');
    await until(() => hasExited(this.child), { what: 'a closed process to end by itself' });
    return totals;
  }

  private until<T>(condition: () => T, what: string): Promise<NonNullable<T>> {
    const orBroken = (): T | 'broken' => {
      if (hasExited(this.child) && this.totals === undefined) this.broken ||= 'it ended early';
      return this.broken ? 'broken' : condition();
    };
    return until(orBroken, { what, timeoutMs: PATIENCE_MS }).then((value) => {
      if (this.broken) throw new Error(`${this.broken}\n${this.written}`);
      return value as NonNullable<T>;
    });
  }

  private order(order: NodeOrder): void {
    this.child.send(order, () => undefined);
  }

  private hear(report: NodeReport): void {
    switch (report.report) {
      case 'opened':
        this.isOpen = true;
        return;
      case 'applied':
        this.applied.push(report);
        return;
      case 'updated':
      case 'refused':
        this.settled.set(report.number, report);
        return;
      case 'admitted':
        for (let at = 0; at < report.spans.length; at += 2) {
          this.spans.push({ from: report.spans[at]!, to: report.spans[at + 1]! });
        }
        return;
      case 'said':
        (report.level === 'warn' ? this.warnings : this.errors).push(report.text);
        return;
      case 'closed':
        this.totals = report.totals;
        return;
      case 'broken':
        this.broken = report.reason;
    }
  }
}
