import { Test } from '@nestjs/testing';
import {
  RateLimitConfig,
  RateLimiter,
  RateLimitModule,
  RateLimitMonitor,
  type Alert,
  type AlertsInput,
  type EarlySignal,
} from 'nestjs-weir';
import { Alerting, type AlertingDeps } from '../../lib/observability/alerts/alerting.js';
import { fingerprintOf } from '../../lib/observability/alerts/alert.js';
import { AlertStates, MOST_STATES } from '../../lib/observability/alerts/states.js';
import { checkAlerts } from '../../lib/observability/alerts/rules.js';
import { type Facts } from '../../lib/observability/sources.js';
import { MemoryBoard } from '../../lib/stores/memory/memory-board.js';
import { TurningClock } from './turning-clock.js';

const QUICK: AlertsInput = {
  hold: '10s',
  minutes: { denialRise: { window: '10s', baseline: '2m', minRequests: 20 } },
};

/** An application whose callers ask so often, second by second. */
async function startApi(alerts: AlertsInput = QUICK) {
  const clock = new TurningClock();
  const told: Alert[][] = [];
  const sink = { send: (batch: readonly Alert[]) => void told.push([...batch]) };
  const module = await Test.createTestingModule({
    imports: [
      RateLimitModule.forRoot({
        ...{ clock, alerts, service: 'shop', nodeId: 'n1' },
        policies: { api: { rate: '10/s', burst: 10, scope: 'node' } },
        monitor: { sinks: [sink] },
      }),
    ],
  }).compile();
  module.useLogger(false);
  await module.init();
  const limiter = module.get(RateLimiter);
  const ask = async (seconds: number, perSecond: number): Promise<void> => {
    for (let second = 0; second < seconds; second++) {
      for (let i = 0; i < perSecond; i++) void limiter.tryAcquire({ policy: 'api', key: 'k' });
      clock.advance(1000);
    }
    await new Promise(setImmediate);
  };
  const names = () => told.flat().map(({ rule, series, state }) => [rule, series, state]);
  return { module, clock, ask, told, names, monitor: module.get(RateLimitMonitor) };
}

describe('alerts of an application', () => {
  it('begin and end, and are told to listeners and sinks', async () => {
    const { module, ask, told, names, monitor } = await startApi();
    const heard: Alert[] = [];
    monitor.on('alert', (alert) => heard.push(alert));
    await ask(150, 5);
    expect(monitor.alerts()).toEqual([]);
    await ask(20, 20);
    const firing = [
      ['denialRise', 'total', 'firing'],
      ['denialRise', 'policy:api', 'firing'],
    ];
    expect(names()).toEqual(firing);
    expect(heard).toEqual(told.flat());
    // Both began in the same second, so they travel together.
    expect(told).toHaveLength(1);
    expect(told[0]![0]).toMatchObject({
      ...{ severity: 'warning', cluster: 'shop', nodeId: 'n1', muted: false, threshold: 0.05 },
      fingerprint: fingerprintOf('denialRise', 'total', 'shop'),
      text: expect.stringMatching(
        /^total: .* % of the requests were denied in the last 10 s, above 5 %$/,
      ) as string,
    });
    await ask(40, 5);
    expect(
      names()
        .slice(2)
        .map(([, , state]) => state),
    ).toEqual(['resolved', 'resolved']);
    const [began, ended] = [told[0]![0]!, told.flat()[2]!];
    expect(ended.sinceMs).toBe(began.sinceMs);
    expect(ended.endedMs).toBeGreaterThan(began.sinceMs + 10_000);
    await module.close();
  });

  it('follow the configuration while they fire', async () => {
    const { module, ask, told, names, monitor } = await startApi();
    const config = module.get(RateLimitConfig);
    await ask(150, 5);
    await ask(20, 20);
    expect(names()).toHaveLength(2);
    await config.update({ alerts: { minutes: { denialRise: { above: 0.9 } } } });
    await ask(5, 20);
    expect(monitor.alerts().map(({ threshold }) => threshold)).toEqual([0.9, 0.9]);
    expect(monitor.alerts()[0]!.text).toMatch(
      /were denied in the last 10 s, no longer above 90 %$/,
    );
    await config.update({ alerts: { minutes: { denialRise: { enabled: false } } } });
    await ask(2, 20);
    expect(told.flat().slice(2)).toMatchObject([
      {
        state: 'resolved',
        reason: 'rule removed',
        text: 'total: denialRise is over (rule removed)',
      },
      { state: 'resolved', reason: 'rule removed' },
    ]);
    await module.close();
  });

  it('are looked at but not told while muted, and told if they still fire then', async () => {
    const { module, ask, clock, names, monitor } = await startApi({
      ...QUICK,
      mute: { denialRise: { series: 'policy:api' } },
    });
    const atMs = clock.epochMs(clock.now());
    await monitor.mute('denialRise', 'total', new Date(atMs + 180_000));
    await ask(150, 5);
    await ask(20, 20);
    expect(names()).toEqual([]);
    expect(monitor.alerts()).toMatchObject([
      { state: 'firing', muted: true },
      { state: 'firing', muted: true },
    ]);
    await ask(15, 20);
    expect(names()).toEqual([['denialRise', 'total', 'firing']]);
    await module.get(RateLimitConfig).update({ alerts: { mute: { denialRise: null } } });
    await ask(2, 20);
    expect(names().slice(1)).toEqual([['denialRise', 'policy:api', 'firing']]);
    const mistaken = monitor.mute('qpsFall' as never, undefined, new Date());
    await expect(mistaken).rejects.toThrow(/^rule: /);
    await module.close();
  });

  it('are not there where they are switched off', async () => {
    const { module, ask, names, monitor } = await startApi({ ...QUICK, enabled: false });
    await ask(150, 5);
    await ask(20, 20);
    expect([names(), monitor.alerts()]).toEqual([[], []]);
    await module.close();
  });

  it('have an early sign once a minute, before anybody is refused', async () => {
    const { module, ask, monitor } = await startApi();
    const signs: EarlySignal[] = [];
    monitor.on('early', (sign) => signs.push(sign));
    await ask(10, 5);
    expect(signs).toEqual([]);
    await ask(90, 10);
    // Of ten tokens the last two leave less than a fifth; who asks on is refused by none.
    expect(signs).toEqual([
      { policy: 'api', of: 'limit', scarce: expect.any(Number) as number },
      { policy: 'api', of: 'limit', scarce: expect.any(Number) as number },
    ]);
    expect(module.get(RateLimiter).stats().policies.api!.denied).toBe(0);
    await module.close();
  });
});

describe('an early sign of a quota', () => {
  it('comes after ten seconds at 80 % of the guarantee, then of the ceiling', async () => {
    const clock = new TurningClock();
    const quota = {
      cluster: { capacity: 1000 },
      apps: { shop: { guaranteed: 100, burst: 200 } },
    };
    const module = await Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ clock, quota, app: 'shop' })],
    }).compile();
    await module.init();
    const signs: EarlySignal[] = [];
    module.get(RateLimitMonitor).on('early', (sign) => signs.push(sign));
    const limiter = module.get(RateLimiter);
    const use = (seconds: number, perSecond: number): void => {
      for (let second = 0; second < seconds; second++) {
        for (let i = 0; i < perSecond; i++) void limiter.tryAcquire({ app: 'shop' });
        clock.advance(1000);
      }
    };
    use(60, 79);
    expect(signs).toEqual([]);
    use(60, 81);
    expect(signs).toEqual([{ app: 'shop', of: 'guaranteed', used: 81, limit: 100 }]);
    await module.close();
  });
});

/** The facts of a process that has nothing but a store. */
const facts = (storeIsUp: boolean, nodes: number): Facts =>
  ({
    ...{ limiter: { policies: {}, store: { nodes } }, calls: {}, storeIsUp },
    ...{ protection: {}, degradation: undefined },
  }) as unknown as Facts;

function startAlone(nodeId: string, more: Partial<AlertingDeps> = {}) {
  const clock = new TurningClock();
  const told: Alert[] = [];
  const sink = { send: (batch: readonly Alert[]) => void told.push(...batch) };
  const alerting = new Alerting({
    ...{ nodeId, service: 's', clock, sinks: [sink], fault: () => {} },
    ...more,
  });
  const pass = (seconds: number, seen: Facts): void => {
    for (let second = 0; second < seconds; second++) {
      clock.advance(1000);
      alerting.look({ nowMicros: clock.now(), facts: seen, series: [] });
    }
  };
  return { alerting, told, pass };
}

describe('a store that is away', () => {
  it('is told by a few of many processes, and by more if that was nobody', () => {
    const seen = { soon: 0, late: 0 };
    for (let node = 0; node < 300; node++) {
      const { pass, told } = startAlone(`node-${node}`);
      pass(42, facts(false, 300));
      seen.soon += told.length;
      pass(90, facts(false, 300));
      seen.late += told.length;
    }
    // By their names no process of this fleet is among the three in 300.
    expect(seen.soon).toBe(0);
    expect(seen.late).toBeGreaterThan(2);
    expect(seen.late).toBeLessThan(20);
  });

  it('is told by each of few, after ten seconds', () => {
    const { pass, told } = startAlone('a');
    pass(10, facts(false, 3));
    expect(told).toEqual([]);
    pass(1, facts(false, 3));
    expect(told).toMatchObject([{ rule: 'storeAway', series: 'store', severity: 'critical' }]);
  });

  it('is told by who does not lead a fleet, and nothing else is', async () => {
    const { pass, told } = startAlone('a', { board: new MemoryBoard(new TurningClock()) });
    const open = {
      ...facts(false, 1),
      protection: { db: { breaker: { state: 'open' } } },
    } as never;
    pass(60, open);
    await new Promise(setImmediate);
    expect(told.map(({ rule }) => rule)).toEqual(['storeAway']);
  });
});

describe('the states of alerts', () => {
  it('are bounded, and what found no room is counted', () => {
    const states = new AlertStates();
    const rule = checkAlerts().rules.find(({ id }) => id === 'relapse')!;
    for (let i = 0; i < MOST_STATES + 50; i++) {
      states.look(rule, `resource:${i}`, { holds: true }, 1_000_000);
    }
    expect([...states.all()]).toHaveLength(MOST_STATES);
    expect(states.dropped).toBe(50);
  });
});
