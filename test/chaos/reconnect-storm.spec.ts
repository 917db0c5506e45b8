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
const STORM_SECONDS = 3;

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

async function dropAgainAndAgain(proxy: TcpProxy, everyMs: number): Promise<void> {
  const until = sharedMicros() + STORM_SECONDS * 1_000_000;
  while (sharedMicros() < until) {
    proxy.drop();
    await passed(everyMs);
  }
}

describe('connections that are lost again and again', () => {
  beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
  afterEach(stopAll);

  // Between two losses Redis is there for a moment only, or for most of the time.
  it.each([100, 400])('leave limits at their rate: every %i ms', async (everyMs) => {
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
    const begin = sharedMicros();
    await dropAgainAndAgain(proxy, everyMs);
    const end = sharedMicros();
    await fleet.goOn(0.5);
    expectAllAnswered(await fleet.close());

    const settled = begin + 1_000_000;
    for (const name of names) {
      const all = fleet.admissions.filter(({ app, from }) => app === name && from >= begin);
      const byShare = all.filter(({ source }) => source === 'fallback').length;
      const perSecond = tokensWithin(all, settled, end) / ((end - settled) / 1_000_000);
      const burst = name === 'window' ? RATE : BURST;
      const need = deepestBurst(all, RATE);
      note({ name, perSecond, byShare, need });
      expect(byShare).toBeGreaterThan(0);
      expect(perSecond).toBeLessThanOrEqual(1.2 * RATE);
      // One burst of Redis, one of the shares, and what is owed: one at most.
      expect(need).toBeLessThanOrEqual(3 * burst);
    }
  });
});
