// One process of a fleet: runs the built library, offers load as it is told, and reports what came of it.
import { createRateLimiter, type RateLimiter } from 'nestjs-weir';
import { PacedLoad } from './paced-load.js';
import {
  namesOf,
  sharedMicros,
  type Order,
  type ProcessSetup,
  type Report,
  type Stream,
} from './protocol.js';
import { Recorder } from './recorder.js';
import { StandstillWatch } from './standstill.js';
import { unsettleWallClock } from './wall-clock.js';

const REPORT_EVERY_MS = 20;
const ANSWERED_WITHIN_MS = 5000;

class FleetProcess {
  private readonly limiter: RateLimiter;
  private readonly recorder: Recorder;
  private readonly load: PacedLoad;
  private readonly reporting: NodeJS.Timeout;
  private readonly standstill = new StandstillWatch();

  constructor(private readonly setup: ProcessSetup) {
    const { quota, policies, store, nodeId, wallClockStepsMs } = setup;
    if (wallClockStepsMs !== undefined) unsettleWallClock(wallClockStepsMs);
    this.limiter = createRateLimiter({ quota, policies, store, nodeId });
    this.recorder = new Recorder(namesOf(setup));
    this.load = new PacedLoad((stream) => void this.ask(stream));
    this.reporting = setInterval(() => this.report(), REPORT_EVERY_MS);
    this.limiter.on('mode', ({ app, mode }) => happened({ name: 'mode', app, mode }));
    this.limiter.on('epoch', ({ epoch }) => happened({ name: 'epoch', epoch }));
    this.limiter.on('overload', ({ overloaded }) => happened({ name: 'overload', overloaded }));
    this.limiter.on('store', ({ state }) => happened({ name: 'store', state }));
  }

  ready(): Promise<void> {
    return this.limiter.ready();
  }

  offer(streams: readonly Stream[]): void {
    this.load.offer(streams);
  }

  async close(): Promise<void> {
    this.load.stop();
    await this.allAnswered();
    await this.limiter.close();
    clearInterval(this.reporting);
    this.report();
    await told({ report: 'closed', totals: this.recorder.totals });
  }

  private ask({ app, cost = 1 }: Stream): Promise<void> {
    const isPolicy = this.setup.policies?.[app] !== undefined;
    const request = isPolicy ? { policy: app, key: 'k', cost } : { app, cost };
    return this.recorder.ask(() => this.limiter.tryAcquire(request), app, cost);
  }

  /** Requests that are still unanswered then stay so, and the totals will show it. */
  private async allAnswered(): Promise<void> {
    const { totals } = this.recorder;
    const deadline = sharedMicros() + ANSWERED_WITHIN_MS * 1000;
    while (totals.answered < totals.asked && sharedMicros() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  private report(): void {
    const standstills = this.standstill.take();
    const upToMicros = sharedMicros();
    tell({ report: 'progress', upToMicros, standstills, ...this.recorder.takeLot() });
  }
}

let running: FleetProcess | undefined;

async function obey(order: Order): Promise<void> {
  switch (order.order) {
    case 'open':
      running = new FleetProcess(order.setup);
      if (order.setup.startsCold !== true) await running.ready();
      return tell({ report: 'opened' });
    case 'load':
      return running?.offer(order.streams);
    case 'close':
      await running?.close();
      // Nobody ends this process from here on: a limiter that is closed must let it go.
      process.off('disconnect', endWithParent);
      process.disconnect();
  }
}

function tell(report: Report): void {
  process.send?.(report);
}

/** Resolves when the report is on its way, so that nothing cuts it off. */
function told(report: Report): Promise<void> {
  return new Promise((resolve) => process.send?.(report, () => resolve()));
}

function happened(happening: Extract<Report, { report: 'happening' }>['happening']): void {
  tell({ report: 'happening', atMicros: sharedMicros(), happening });
}

function endWithParent(): void {
  process.exit(0);
}

process.on('disconnect', endWithParent);
process.on('message', (order) => {
  obey(order as Order).catch((error: unknown) => {
    tell({
      report: 'broken',
      reason: error instanceof Error ? String(error.stack) : String(error),
    });
  });
});
