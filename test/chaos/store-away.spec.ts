import { Redis } from 'ioredis';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import {
  startProxy,
  startRedis,
  stopAll,
  until,
  type RedisProcess,
  type TcpProxy,
} from '../support/index.js';
import { tokensWithin, usualRate } from './admissions.js';
import {
  expectAllAnswered,
  expectSharesOnly,
  expectSwitchesOnce,
  expectWithinBoundAndShares,
} from './expectations.js';
import { DEPTH, Fleet, LEASE_TTL_MICROS, SHARES_PER_SECOND } from './fleet.js';
import { viewLedger } from './ledger-view.js';
import { type LoadProcess } from './load-process.js';
import { note } from './note.js';
import { sharedMicros } from './process/protocol.js';

const DEADLINE_MS = 200;
/** The most that one of two nodes may hold. */
const LEASE = DEPTH / 4;

type Spoil = (proxy: TcpProxy, goOn: (seconds: number) => Promise<void>) => Promise<void>;

const APPS = ['shop', 'search'];
const LOAD = [
  { app: 'shop', perSecond: 800 },
  { app: 'search', perSecond: 400 },
];

/** Every app of the process was decided without Redis once, and is not any more. */
function isBack(one: LoadProcess): boolean {
  return APPS.every((app) => {
    const modes = one.modesOf(app);
    return modes.includes('offline') && modes.at(-1) !== 'offline';
  });
}

/** When it was last decided without Redis. */
function backAt({ happenings }: LoadProcess): number {
  const offline = happenings.findLastIndex((one) => one.name === 'mode' && one.mode === 'offline');
  return happenings[offline + 1]!.atMicros;
}

describe('a Redis that does not answer', () => {
  let server: RedisProcess;
  let client: Redis;

  beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);

  beforeEach(async () => {
    server = await startRedis();
    client = new Redis(server.adminUrl);
  });

  afterEach(async () => {
    client.disconnect();
    await stopAll();
  });

  it('for longer than a lease leaves each node its share, and no more', async () => {
    const fleet = new Fleet({ type: 'redis', url: server.url });
    await fleet.begin(LOAD, LOAD, LOAD);
    // From then on all of them know how many they are.
    await fleet.goOn(0.5);
    const warmFrom = sharedMicros();
    const pauseMicros = 2.2 * LEASE_TTL_MICROS;
    const asked = sharedMicros();
    await client.client('PAUSE', pauseMicros / 1000, 'ALL');
    const pausedBy = sharedMicros();
    await until(() => fleet.processes.every(isBack));
    await fleet.goOn(0.5);
    const after = await fleet.rateOf(SHARES_PER_SECOND);
    const totals = await fleet.close();

    const all = fleet.admissions.filter(({ from }) => from >= warmFrom);
    expectWithinBoundAndShares(all, fleet.processes.length);
    const nodes = fleet.processes.length;
    const pauseEnds = asked + pauseMicros;
    const before = all.filter(({ to }) => to <= pauseEnds);
    expectSharesOnly(
      before.filter(({ source }) => source === 'fallback'),
      nodes,
    );
    // A lease that was asked for before the pause is over by then, and none can have come.
    const leasesEnd = pausedBy + LEASE_TTL_MICROS;
    const alone = before.filter(({ from }) => from >= leasesEnd);
    expectSharesOnly(alone, nodes);
    const perSecond = usualRate(alone, leasesEnd, pauseEnds);
    note({
      perSecond,
      after,
      backMs: fleet.processes.map((one) => (backAt(one) - pauseEnds) / 1000),
    });
    expect(perSecond).toBeGreaterThan(SHARES_PER_SECOND / 2);
    expect(after).toBeGreaterThanOrEqual(SHARES_PER_SECOND);
    expectAllAnswered(totals);
    expectSwitchesOnce(fleet.processes, APPS);
  });

  it.each<[string, number, Spoil]>([
    [
      'are lost with their connection',
      LEASE,
      async (proxy, goOn) => {
        for (let time = 0; time < 5; time++) {
          const { connections } = proxy.stats;
          proxy.cutAtNextReply();
          await until(() => proxy.stats.connections > connections);
          await goOn(0.2);
        }
      },
    ],
    [
      'come after the deadline',
      // A lease counts from the first time that the call was sent, and some of it is over by then.
      Infinity,
      async (proxy, goOn) => {
        proxy.delayReplies(1.5 * DEADLINE_MS);
        await goOn(1);
        proxy.delayReplies(0);
      },
    ],
    [
      'come twice',
      LEASE,
      async (proxy, goOn) => {
        proxy.doubleReplies(true);
        await goOn(1);
        proxy.doubleReplies(false);
      },
    ],
  ])(
    'whose replies %s: no call counts twice, no token is minted',
    async (_how, mostLost, spoil) => {
      const proxy = await startProxy({ targetPort: server.port });
      const decisionTimeout = `${DEADLINE_MS}ms`;
      const fleet = new Fleet({ type: 'redis', url: proxy.url, decisionTimeout });
      const processes = await fleet.begin(LOAD, LOAD);
      await fleet.goOn(0.3);
      await spoil(proxy, (seconds) => fleet.goOn(seconds));
      await fleet.goOn(0.5);
      const backAt = sharedMicros();
      await until(() =>
        processes.every(({ admissions }) =>
          admissions.some(({ from, source }) => from > backAt && source !== 'fallback'),
        ),
      );
      expectAllAnswered(await fleet.close());

      const bySource = (...sources: string[]): number =>
        tokensWithin(
          fleet.admissions.filter(({ source }) => sources.includes(source)),
          0,
          Infinity,
        );
      const spent = bySource('local', 'store');
      const { granted, lowest, debt, outstanding } = await viewLedger(client);
      const byShare = bySource('fallback');
      note({ spent, granted, byShare, debt });
      expect(spent).toBeLessThanOrEqual(granted);
      // Tokens granted twice for one call would never be spent. Tokens granted too late
      // pay for requests that passed by share.
      expect(granted - spent - byShare).toBeLessThanOrEqual(mostLost);
      expect(lowest).toBeGreaterThanOrEqual(0);
      expect(debt).toBeLessThanOrEqual(byShare);
      expect(outstanding).toBe(0);
      expectWithinBoundAndShares(fleet.admissions, processes.length);
      expectSwitchesOnce(processes, APPS);
    },
  );
});
