import { setTimeout as passed } from 'node:timers/promises';
import { type PolicyInput, type QuotaOptions } from 'nestjs-weir';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { startProxy, startRedis, stopAll, type TcpProxy } from '../support/index.js';
import { deepestBurst, tokensWithin } from './admissions.js';
import { expectAllAnswered } from './expectations.js';
import { Fleet } from './fleet.js';
import { note } from './note.js';
import { sharedMicros } from './process/protocol.js';

const PROCESSES = 3;
const RATE = 300;
const BURST = 100;
/** Time in which the first tokens, of a full bucket here and there, are spent. */
const SETTLING_SECONDS = 1;
const MEASURED_SECONDS = 2;

const POLICIES: Readonly<Record<string, PolicyInput>> = {
  exact: { rate: RATE, burst: BURST, sync: 'exact' },
  leased: { rate: RATE, burst: BURST, sync: 'leased' },
  policer: { rate: RATE, burst: BURST, algorithm: 'leaky-bucket' },
  window: { rate: RATE, algorithm: 'sliding-window' },
};

const QUOTA: QuotaOptions = {
  clusterId: 'storm',
  cluster: { capacity: RATE },
  apps: { shop: { guaranteed: 0.9 * RATE, burst: 2 * RATE, burstDuration: '1s', priority: 0 } },
};

/** Connections are lost for so long; gives the span. */
async function storm(proxy: TcpProxy, everyMs: number, seconds: number): Promise<Storm> {
  const from = sharedMicros();
  while (sharedMicros() < from + seconds * 1_000_000) {
    proxy.drop();
    await passed(everyMs);
  }
  return { everyMs, from, to: sharedMicros() };
}

interface Storm {
  readonly everyMs: number;
  readonly from: number;
  readonly to: number;
}

/**
 * Tokens that a busy machine may add, as docs/redis-outages.md has it; none where it has time. The store hears
 * of what passed by share later by as long as a process stands still. And where it takes so long to be
 * connected again that an empty bucket has become full meanwhile, that is one burst more.
 */
function ofBusyMachine(fleet: Fleet, burst: number, from: number, to: number): number {
  const fullAfterMicros = (burst / RATE) * 1_000_000;
  const long = fleet.processes.flatMap(({ happenings }) => {
    const switches = happenings.filter(({ name }) => name === 'store');
    return switches.filter((one, i) => {
      const endMicros = switches[i + 1]?.atMicros ?? Infinity;
      const isWithin = one.atMicros <= to && endMicros >= from;
      const isLong = endMicros - one.atMicros > fullAfterMicros;
      return one.name === 'store' && one.state === 'down' && isWithin && isLong;
    });
  });
  return (burst * long.length) / PROCESSES + RATE * fleet.standstillSeconds(from, to);
}

describe('connections that are lost again and again', () => {
  beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
  afterEach(stopAll);

  it('leave limits at their rate', async () => {
    const server = await startRedis();
    const proxy = await startProxy({ targetPort: server.port });
    const fleet = new Fleet({ type: 'redis', url: proxy.url, decisionTimeout: '100ms' }, QUOTA);
    await Promise.all(Array.from({ length: PROCESSES }, () => fleet.start({ policies: POLICIES })));
    const names = [...Object.keys(POLICIES), 'shop'];
    // From then on all of them know how many they are.
    for (const one of fleet.processes) {
      one.offer(...names.map((app) => ({ app, perSecond: 20 })));
    }
    await fleet.goOn(1.2);
    for (const one of fleet.processes) {
      one.offer(...names.map((app) => ({ app, perSecond: RATE })));
    }
    // Between two losses Redis is there for most of the time, or for a moment only. The latter leaves
    // debts, which would make the other one look better than it is.
    const { from: begin } = await storm(proxy, 400, SETTLING_SECONDS);
    const storms = [
      await storm(proxy, 400, MEASURED_SECONDS),
      await storm(proxy, 100, MEASURED_SECONDS),
    ];
    await fleet.goOn(0.3);
    expectAllAnswered(await fleet.close());

    for (const name of names) {
      const burst = name === 'window' ? RATE : BURST;
      const all = fleet.admissions.filter(({ app, from }) => app === name && from >= begin);
      for (const { everyMs, from, to } of storms) {
        const seconds = (to - from) / 1_000_000;
        const busy = ofBusyMachine(fleet, burst, from, to);
        const within = all.filter((one) => one.from >= from && one.to <= to);
        const byShare = within.filter(({ source }) => source === 'fallback').length;
        const admitted = tokensWithin(within, from, to);
        note({ name, everyMs, perSecond: admitted / seconds, busy, byShare });
        expect(byShare).toBeGreaterThan(0);
        expect(admitted).toBeLessThanOrEqual(1.2 * RATE * seconds + busy);
      }
      const need = deepestBurst(all, RATE);
      const busy = ofBusyMachine(fleet, burst, begin, Infinity);
      note({ name, need, busy });
      // One burst of Redis, one of the shares, and what is owed: one at most.
      expect(need).toBeLessThanOrEqual(3 * burst + busy);
    }
  });
});
