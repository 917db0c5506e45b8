import { setTimeout as passed } from 'node:timers/promises';
import { type PolicyInput } from 'nestjs-weir';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { startProxy, startRedis, stopAll, type TcpProxy } from '../support/index.js';
import { deepestBurst, tokensWithin } from './admissions.js';
import { expectAllAnswered } from './expectations.js';
import { Fleet } from './fleet.js';
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
    const perSecond = tokensWithin(all, begin + 2_000_000, begin + 8_000_000) / 6;
    const byShare = all.filter(({ source }) => source === 'fallback').length;
    const outages = fleet.processes.flatMap(({ happenings }) =>
      happenings.filter((one) => one.name === 'store' && one.state === 'down'),
    ).length;
    // A process that had no time for its replies may take that for an outage, and then its share comes on top.
    const rate = outages === 0 ? RATE : 2 * RATE;
    const need = deepestBurst(all, rate);
    note({ perSecond, byShare, outages, need });
    expect(byShare).toBeGreaterThan(0);
    expect(perSecond).toBeLessThanOrEqual(1.1 * rate);
    // The burst itself, and what is owed; 0.2 s is how late the latest may be.
    expect(need).toBeLessThanOrEqual((2 + outages) * RATE + 0.2 * RATE);
  });
});
