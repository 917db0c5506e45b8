import { MonitorOptions } from '../../lib/observability/monitor-options.js';
import { type FleetSeen } from '../../lib/observability/fleet/fleet.js';
import { Monitor } from '../../lib/observability/monitor.js';
import { FallbackCounts } from '../../lib/degradation/core/fallback-chain.js';
import { Reading } from '../../lib/observability/series-table.js';
import { Sources, type Facts, type SourcesDeps } from '../../lib/observability/sources.js';
import { ManualClock, settle } from '../support/manual-clock.js';
import { TurningClock } from './turning-clock.js';

const SECOND = 1_000_000;

describe('Monitor', () => {
  const counted = { count: 0 };
  const sources = {
    facts: () => ({ adjusts: [] }),
    read: (_: unknown, into: Reading) => void (into.total.count = counted.count),
    tick: () => ({ adjusts: [] }),
    stop: () => {},
  } as unknown as Sources;

  function started(startMicros = 0) {
    const clock = new TurningClock(startMicros);
    counted.count = 0;
    const monitor = new Monitor('n', new MonitorOptions(), sources, clock);
    monitor.start();
    const total = monitor.series('total')!;
    return { clock, monitor, total };
  }

  it('keeps each second in the slot of that second, whenever it was started', () => {
    const { clock, total } = started(300_000);
    counted.count = 5;
    clock.advance(1000);
    counted.count = 12;
    clock.advance(1000);
    expect(total.seconds.at(0)).toMatchObject({ count: 5, spanMs: 700 });
    expect(total.seconds.at(1)).toMatchObject({ count: 7, spanMs: 1000 });
  });

  it('says since when Redis is away of itself alone: of other nodes it has not seen that', async () => {
    const clock = new TurningClock(0, 0);
    const facts = {
      ...{ adjusts: [], denials: [], protection: {}, calls: {}, storeIsUp: true, epoch: 1 },
      limiter: { policies: {}, store: { nodes: 2 } },
    };
    const watched = {
      ...{ facts: () => facts, tick: () => facts, read: () => {}, stop: () => {} },
      ...{ deniedKeys: () => [], hotValues: () => [], quotaStatus: () => undefined },
    };
    const monitor = new Monitor('n', new MonitorOptions(), watched as unknown as Sources, clock);
    monitor.start();
    const ofFleet = async (awayNodes: number): Promise<number | undefined> => {
      const condition = { store: { isUp: awayNodes < 2, awayNodes }, modes: new Map() };
      const seen = { merge: {}, condition, series: [], epochMicros: 0 } as unknown as FleetSeen;
      return (await monitor.fleetContext(seen)).store!.sinceMs;
    };
    clock.advance(5000);
    facts.storeIsUp = false;
    clock.advance(10_000);
    expect(monitor.state().store).toEqual({ isUp: false, awayNodes: 1, sinceMs: 6000 });
    expect(await ofFleet(1)).toBe(6000);
    facts.storeIsUp = true;
    clock.advance(10_000);
    // Its own outage of before is not that of another.
    expect(await ofFleet(1)).toBeUndefined();
    expect(await ofFleet(2)).toBeUndefined();
    expect(await ofFleet(0)).toBe(16_000);
  });

  it('leaves a gap where the loop was stalled, and tells how long the rest covers', () => {
    const { clock, total } = started();
    clock.advance(1000);
    counted.count = 50;
    clock.jump(4.2 * SECOND);
    clock.advance(0);
    clock.advance(800);
    const slots = total.seconds.last(6 * SECOND, 7);
    expect(slots.map((slot) => slot?.count)).toEqual([
      0,
      undefined,
      undefined,
      undefined,
      50,
      0,
      undefined,
    ]);
    expect(total.seconds.at(4)!.spanMs).toBe(4200);
    expect(total.seconds.at(5)!.spanMs).toBe(800);
  });

  it('makes one tick of all that the loop has missed, and goes on when it turns', async () => {
    const clock = new ManualClock(0);
    const monitor = new Monitor('n', new MonitorOptions(), sources, clock);
    let ticks = 0;
    monitor.on('tick', () => void ticks++);
    monitor.start();
    clock.advance(600_000);
    expect(ticks).toBe(1);
    await settle();
    clock.advance(1000);
    expect(ticks).toBe(2);
    monitor.stop();
    await settle();
    clock.advance(5000);
    expect(ticks).toBe(2);
  });

  it('makes no tick of its own out of the rest of a second that a timer was early', () => {
    const clock = new TurningClock(0);
    const { every } = clock;
    clock.every = (ms, task) => every.call(clock, ms - 0.1, task);
    const monitor = new Monitor('n', new MonitorOptions(), sources, clock);
    let ticks = 0;
    monitor.on('tick', () => ticks++);
    monitor.start();
    clock.advance(3000);
    expect(ticks).toBe(3);
    expect(monitor.series('total')!.seconds.sum(clock.now(), 3).slots).toBe(3);
  });

  it('tells each second, and nothing after it was stopped', () => {
    const { clock, monitor } = started();
    const heard: number[] = [];
    monitor.on('tick', ({ nowMicros }) => heard.push(nowMicros));
    clock.advance(3000);
    monitor.stop();
    clock.advance(3000);
    expect(heard).toEqual([SECOND, 2 * SECOND, 3 * SECOND]);
    expect(clock.pending).toBe(0);
  });

  it('goes on after a tick that has failed, and tells of it', () => {
    const clock = new TurningClock(0);
    const failed: unknown[] = [];
    const broken = { ...sources, tick: () => failing() } as unknown as Sources;
    const failing = (): never => {
      throw new Error('no figures');
    };
    const monitor = new Monitor('n', new MonitorOptions(), broken, clock, (e) => failed.push(e));
    monitor.start();
    clock.advance(2000);
    expect(failed).toHaveLength(2);
  });
});

describe('Sources', () => {
  /** A limiter whose app has denied so often, and a part of it because the cluster had no more. */
  const stand = () => {
    const counts = { denied: 0, byCluster: 0 };
    const stats = () => {
      const local = { allowed: 0, denied: counts.denied, deniedByCluster: counts.byCluster };
      const none = { allowed: 0, denied: 0, deniedByCluster: 0 };
      const bySource = { local, store: none, fallback: none };
      return { quota: { decisions: 0, localHits: 0, apps: { a: { ...local, bySource } } } };
    };
    const limiter = { on: () => () => {}, stats };
    const none = { counts: () => new Map(), stats: () => ({}) };
    const deps = { limiter, transports: none, protection: none, degradation: () => undefined };
    return { counts, sources: new Sources(deps as unknown as SourcesDeps) };
  };

  it('know which tier denied an app lately, and forget what is long ago', () => {
    const { counts, sources } = stand();
    expect(sources.tick().denials).toEqual([]);
    Object.assign(counts, { denied: 100, byCluster: 100 });
    expect(sources.tick().denials).toEqual([{ app: 'a', denied: 100, byCluster: 100 }]);
    for (let second = 0; second < 30; second++) {
      counts.denied += 10;
      sources.tick();
    }
    const [own] = sources.facts().denials;
    expect(own!.byCluster / own!.denied).toBeLessThan(0.05);
    for (let second = 0; second < 60; second++) sources.tick();
    expect(sources.facts().denials).toEqual([]);
  });

  it('count a request over its limit once: degraded, or denied if no level had an answer', () => {
    const limiter = { on: () => () => {} };
    const sources = new Sources({ limiter } as unknown as SourcesDeps);
    const fallbacks = new FallbackCounts();
    for (let n = 0; n < 3; n++) fallbacks.answered(2, 'limited', undefined);
    fallbacks.unansweredFor('limited');
    fallbacks.unansweredFor('failed');
    const into = new Reading();
    sources.read(
      {
        requests: new Map([['http', { requests: 10, denied: 2, handedOver: 4 }]]),
        ...{ limiter: { policies: {} }, protection: {}, calls: undefined },
        degradation: { resources: [], fallbacks: fallbacks.stats() },
      } as unknown as Facts,
      into,
    );
    expect(into.total).toMatchObject({ count: 10, denied: 3, degraded2: 3 });
  });
});
