import { join } from 'node:path';
import { type ConfigLayer } from 'nestjs-weir';
import { root } from '../setup/ensure-built.js';
import { ObedientProcess } from '../support/obedient-process.js';
import { hasExited } from '../support/processes.js';
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
export class ConfigNode extends ObedientProcess<NodeOrder, NodeReport> {
  /** Revisions that it has applied, in order. */
  readonly applied: { readonly revision: number; readonly step: number }[] = [];
  /** When requests were asked and answered that passed the shared policy. */
  readonly spans: { readonly from: number; readonly to: number }[] = [];
  readonly warnings: string[] = [];
  readonly errors: string[] = [];
  private readonly settled = new Map<number, Settled>();
  private isOpen = false;
  private totals: NodeTotals | undefined;

  private constructor() {
    super(MAIN);
  }

  static async start(setup: NodeSetup): Promise<ConfigNode> {
    const node = new ConfigNode();
    node.order({ order: 'open', setup });
    await node.until(() => node.isOpen, `${setup.nodeId} to start`, PATIENCE_MS);
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
    return this.until(() => this.settled.get(number), `update ${number}`, PATIENCE_MS);
  }

  async close(): Promise<NodeTotals> {
    this.order({ order: 'close' });
    const totals = await this.until(() => this.totals, 'a process to close', PATIENCE_MS);
    await until(() => hasExited(this.child), { what: 'a closed process to end by itself' });
    return totals;
  }

  protected get isDone(): boolean {
    return this.totals !== undefined;
  }

  protected hear(report: NodeReport): void {
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
