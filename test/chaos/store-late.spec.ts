import { setTimeout as passed } from 'node:timers/promises';
import { type PolicyInput } from 'nestjs-weir';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { startProxy, startRedis, stopAll, type TcpProxy } from '../support/index.js';
import { deepestBurst, tokensWithin, type Admission } from './admissions.js';
import { expectAllAnswered } from './expectations.js';
import { Fleet } from './fleet.js';
import { type LoadProcess } from './load-process.js';
import { note } from './note.js';
import { sharedMicros } from './process/protocol.js';

const PROCESSES = 4;
const RATE = 200;
const POLICY: PolicyInput = { rate: RATE, sync: 'exact' };

/** Replies are 160 ms late during 60 of every 400 ms, which is past the deadline of 100 ms. */
async function beLateNowAndThen(proxy: TcpProxy, seconds: number): Promise<void> {
  const until = sharedMicros() + seconds * 1_000_000;
  while (sharedMicros() < until) {
    proxy.delayReplies(160);
    await passed(60);
    proxy.delayReplies(0);
    await passed(340);
  }
}

/** Admissions of a process while it held Redis to be away, and the number of such times. */
function whileAway({ happenings, admissions }: LoadProcess): {
  outages: number;
  admitted: Admission[];
} {
  const switches = happenings.filter((one) => one.name === 'store');
  const isAwayAt = (micros: number): boolean =>
    switches.findLast(({ atMicros }) => atMicros <= micros)?.state === 'down';
  return {
    outages: switches.filter(({ state }) => state === 'down').length,
    admitted: admissions.filter(({ to, source }) => source === 'fallback' && isAwayAt(to)),
  };
}

describe('a Redis that is late now and then', () => {
  beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
  afterEach(stopAll);

  it('leaves a policy at its rate: what passed without it is owed to it', async () => {
    const server = await startRedis();
    const proxy = await startProxy({ targetPort: server.port });
    const fleet = new Fleet({ type: 'redis', url: proxy.url, decisionTimeout: '100ms' });
    const setup = { quota: undefined, policies: { p: POLICY } };
    await Promise.all(Array.from({ length: PROCESSES }, () => fleet.start(setup)));
    // From then on all of them know how many they are.
    for (const one of fleet.processes) one.offer({ app: 'p', perSecond: 20 });
    await fleet.goOn(1.2);
    for (const one of fleet.processes) one.offer({ app: 'p', perSecond: RATE });
    const begin = sharedMicros();
    await beLateNowAndThen(proxy, 8);
    await fleet.goOn(0.5);
    expectAllAnswered(await fleet.close());

    const all = fleet.admissions.filter(({ from }) => from >= begin);
    const byShare = all.filter(({ source }) => source === 'fallback').length;
    // A process that had no time for its replies may take that for an outage: it has its share meanwhile,
    // and at its begin and end a part of the burst.
    const away = fleet.processes.map(whileAway);
    for (const { admitted } of away) {
      expect(deepestBurst(admitted, RATE / PROCESSES)).toBeLessThanOrEqual(RATE / PROCESSES + 1e-6);
    }
    const outages = away.reduce((sum, one) => sum + one.outages, 0);
    const excess = (2 * outages * RATE) / PROCESSES;
    const alone = new Set(away.flatMap(({ admitted }) => admitted));
    const others = all.filter((one) => !alone.has(one));
    const perSecond = tokensWithin(others, begin + 2_000_000, begin + 8_000_000) / 6;
    const need = deepestBurst(others, RATE);
    // 0.2 s is how late the latest reply may be, and then a process or the proxy that stood still.
    const late = RATE * fleet.standstillSeconds(begin, Infinity);
    note({ perSecond, byShare, outages, need, late });
    expect(byShare).toBeGreaterThan(0);
    expect(perSecond).toBeLessThanOrEqual(1.1 * RATE + (excess + late) / 6);
    // The burst itself, and what is owed.
    expect(need).toBeLessThanOrEqual(2 * RATE + 0.2 * RATE + excess + late);
  });
});
