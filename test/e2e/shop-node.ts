import { join } from 'node:path';
import { root } from '../setup/ensure-built.js';
import { ObedientProcess } from '../support/obedient-process.js';
import { hasExited } from '../support/processes.js';
import { until } from '../support/until.js';
import { type ShopOrder, type ShopReport } from './shop/protocol.js';

const MAIN = join(root, 'build/test/e2e/shop/main.js');
const PATIENCE_MS = 60_000;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Readonly<Record<string, unknown>>;
}

let addresses = 0;

/** An address that nobody has used. */
export const newAddress = (): string => `10.1.${addresses >> 8}.${addresses++ & 255}`;

/** A process of the shop, as seen from the test. */
export class ShopNode extends ObedientProcess<ShopOrder, ShopReport> {
  /** Its log, each line with its level. */
  readonly lines: string[] = [];
  private url = '';
  private slowed = 0;
  protected isDone = false;

  private constructor() {
    super(MAIN);
  }

  static async start(url: string, nodeId: string): Promise<ShopNode> {
    const node = new ShopNode();
    node.order({ order: 'open', url, nodeId });
    await node.until(() => node.url, `${nodeId} to start`, PATIENCE_MS);
    return node;
  }

  async ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
    const response = await fetch(this.url + path, {
      ...{ method, headers: { 'x-forwarded-for': newAddress(), ...headers } },
    });
    const body = (await response.json()) as Answer['body'];
    return { status: response.status, headers: response.headers, body };
  }

  async slow(what: 'database' | 'cache', ms: number): Promise<void> {
    const before = this.slowed;
    this.order({ order: 'slow', what, ms });
    await this.until(() => this.slowed > before, 'it to be slow', PATIENCE_MS);
  }

  /** Resolves to the first line that is like this. */
  line(pattern: RegExp): Promise<string> {
    const found = (): string | undefined => this.lines.find((line) => pattern.test(line));
    return this.until(found, `a line ${String(pattern)} in\n${this.lines.join('\n')}`, PATIENCE_MS);
  }

  async close(): Promise<void> {
    this.order({ order: 'close' });
    await this.until(() => this.isDone, 'a process to close', PATIENCE_MS);
    await until(() => hasExited(this.child), { what: 'a closed process to end by itself' });
  }

  protected hear(report: ShopReport): void {
    switch (report.report) {
      case 'opened':
        this.url = report.url;
        return;
      case 'slowed':
        this.slowed++;
        return;
      case 'said':
        this.lines.push(report.line);
        return;
      case 'closed':
        this.isDone = true;
        return;
      case 'broken':
        this.broken = report.reason;
    }
  }
}
