// One process of a fleet: a Nest application on the built library, which asks for limits without end.
import { Module, type INestApplicationContext, type LoggerService } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RateLimitConfig, RateLimiter, RateLimitModule, type Decision } from 'nestjs-weir';
import { sharedMicros } from '../../chaos/process/protocol.js';
import {
  documentOf,
  LEFT,
  PROMO,
  RIGHT,
  type NodeOrder,
  type NodeReport,
  type NodeSetup,
  type NodeTotals,
} from './protocol.js';

const TICK_MS = 2;
const ASKED_PER_TICK = 2;
const REPORT_EVERY_MS = 50;
/** A machine that is short of time must not look like an outage. */
const PATIENCE = '10s';

class Node {
  private readonly totals: NodeTotals = {
    ...{ asked: 0, answered: 0, failed: 0 },
    ...{ mixes: [], strays: [] },
  };
  private readonly timers: NodeJS.Timeout[] = [];
  private spans: number[] = [];
  private app!: INestApplicationContext;
  private limiter!: RateLimiter;
  private config!: RateLimitConfig;

  async open(setup: NodeSetup): Promise<void> {
    for (const event of ['unhandledRejection', 'uncaughtException', 'warning']) {
      process.on(event, (what) => this.totals.strays.push(`${event}: ${String(what)}`));
    }
    this.app = await NestFactory.createApplicationContext(moduleOf(setup), { logger: LOGGER });
    this.limiter = this.app.get(RateLimiter);
    this.config = this.app.get(RateLimitConfig);
    this.config.changes$.subscribe(() => this.changed());
    tell({ report: 'opened', revision: this.config.current().revision });
    this.changed();
    if (setup.isBusy) this.timers.push(setInterval(() => this.tick(), TICK_MS));
    this.timers.push(setInterval(() => this.report(), REPORT_EVERY_MS));
  }

  update({ patch, number }: Extract<NodeOrder, { order: 'update' }>): Promise<void> {
    return this.config.update(patch, { by: `update ${number}` }).then(
      ({ revision }) => tell({ report: 'updated', number, revision }),
      (error: unknown) => tell({ report: 'refused', number, reason: String(error) }),
    );
  }

  async close(): Promise<void> {
    for (const timer of this.timers) clearInterval(timer);
    while (this.totals.answered < this.totals.asked) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await this.app.close();
    this.report();
    await told({ report: 'closed', totals: this.totals });
  }

  /** Right after a change, all parts of the process must be of one mind. */
  private changed(): void {
    const { revision, document } = this.config.current();
    const { left, right, shared } = document.policies!;
    const step = Number(left!.rate) - LEFT;
    const isWhole = Number(right!.rate) - RIGHT === step && Number(shared!.rate) > 0;
    if (!isWhole) this.mixed('a document of two');
    if (this.limiter.revision !== revision) this.mixed(`${revision} and ${this.limiter.revision}`);
    this.lookForMix();
    tell({ report: 'applied', revision, step: step % PROMO });
  }

  private tick(): void {
    for (let n = 0; n < ASKED_PER_TICK; n++) {
      this.lookForMix();
      void this.ask(() => this.limiter.tryAcquire({ app: 'shop' }));
      void this.askShared();
    }
  }

  /** Two policies in one request: their figures tell what revision each of them is of. */
  private lookForMix(): void {
    const decision = this.limiter.tryAcquire([
      { policy: 'left', key: 'k' },
      { policy: 'right', key: 'k' },
    ]) as Decision;
    const [left, right] = decision.decisions ?? [];
    if (left === undefined || right === undefined) return;
    if (left.limit - LEFT !== right.limit - RIGHT) this.mixed(`${left.limit} ${right.limit}`);
  }

  private async askShared(): Promise<void> {
    const from = sharedMicros();
    const decision = await this.ask(() => this.limiter.tryAcquire({ policy: 'shared', key: 'k' }));
    if (decision?.allowed) this.spans.push(from, sharedMicros());
  }

  private async ask(question: () => Decision | Promise<Decision>): Promise<Decision | undefined> {
    this.totals.asked++;
    try {
      return await question();
    } catch (error) {
      this.totals.failed++;
      this.totals.strays.push(String(error));
      return undefined;
    } finally {
      this.totals.answered++;
    }
  }

  private mixed(what: string): void {
    if (this.totals.mixes.length < 10) this.totals.mixes.push(what);
  }

  private report(): void {
    const spans = Float64Array.from(this.spans);
    this.spans = [];
    tell({ report: 'admitted', spans });
  }
}

function moduleOf({ url, nodeId, pollMs, step, configVersion }: NodeSetup) {
  const { policies, apps } = documentOf(step);
  class NodeModule {}
  Module({
    imports: [
      RateLimitModule.forRoot({
        ...{ policies, nodeId, quota: { apps }, app: 'shop' },
        store: { type: 'redis', url, decisionTimeout: PATIENCE },
        config: { poll: pollMs },
        ...(configVersion !== undefined && { configVersion }),
      }),
    ],
  })(NodeModule);
  return NodeModule;
}

const LOGGER: LoggerService = {
  log: () => {},
  warn: (text: string) => tell({ report: 'said', level: 'warn', text }),
  error: (text: string) => tell({ report: 'said', level: 'error', text }),
};

function tell(report: NodeReport): void {
  process.send?.(report);
}

/** Resolves when the report is on its way, so that nothing cuts it off. */
function told(report: NodeReport): Promise<void> {
  return new Promise((resolve) => process.send?.(report, () => resolve()));
}

const node = new Node();

async function obey(order: NodeOrder): Promise<void> {
  switch (order.order) {
    case 'open':
      return node.open(order.setup);
    case 'update':
      return node.update(order);
    case 'close':
      await node.close();
      process.off('disconnect', endWithParent);
      process.disconnect();
  }
}

function endWithParent(): void {
  process.exit(0);
}

process.on('disconnect', endWithParent);
process.on('message', (order) => {
  obey(order as NodeOrder).catch((error: unknown) => {
    tell({ report: 'broken', reason: error instanceof Error ? error.stack! : String(error) });
  });
});
