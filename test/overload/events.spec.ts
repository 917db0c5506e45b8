import { type Refusal, type LineWaiter } from '../../lib/overload/line.js';
import { OverloadLog } from '../../lib/overload/overload.log.js';
import { Overload } from '../../lib/overload/overload.js';
import { type OverloadInput } from '../../lib/overload/settings.js';
import { ManualClock, settle } from '../support/manual-clock.js';
import { LogLines } from '../support/nest/warnings.js';
import { until } from '../support/until.js';

describe('overload tells', () => {
  const log = new LogLines();
  let clock: ManualClock;
  let overload: Overload;

  beforeEach(() => {
    log.start();
    clock = new ManualClock();
  });
  afterEach(() => {
    overload.close();
    log.take();
    log.stop();
  });

  const open = (options: OverloadInput = {}, tier?: () => never): void => {
    overload = new Overload({
      options: { enabled: true, ...options },
      clock,
      tier,
      log: new OverloadLog(clock),
    });
  };
  const work = (): LineWaiter & { ends: string[] } => {
    const ends: string[] = [];
    return {
      ...{ tier: 0, ends, isGone: () => false },
      run: () => void ends.push('ran'),
      refuse: (why: Refusal) => void ends.push(why),
    };
  };

  it('when the loop has had no rest for interval, and when it has rested, once a second', async () => {
    open();
    const told: unknown[] = [];
    overload.on('standing', (event) => told.push(event));
    // Nothing is awaited, so that the loop of this process does not rest.
    clock.advance(3000);
    expect(told).toEqual([{ standing: true, sinceMs: 1000, waiting: 0 }]);
    expect(overload.stats().standing).toBe(true);
    await until(() => {
      clock.advance(1000);
      return told.length > 1;
    });
    expect(told.slice(1)).toMatchObject([{ standing: false, waiting: 0 }]);
    const [began, ended] = log.take().filter((line) => line.includes(' rest'));
    expect(began).toBe(
      'warn The event loop has had no rest for 200 ms: requests wait by tier, or are refused with 503 (0 wait now)',
    );
    expect(ended).toMatch(
      /^log The event loop has rested again after .+ s: 0 requests waited, 0 were refused$/,
    );
  });

  it('how many of which tier were refused, once a second', () => {
    open({ maxInFlight: 1, maxWaiting: 1 });
    const told: unknown[] = [];
    const stop = overload.on('refused', (event) => told.push(event));
    overload.line.started();
    const all = [work(), work(), work()];
    for (const one of all) overload.enter(one);
    expect(all.map(({ ends }) => ends)).toEqual([[], ['full'], ['full']]);
    expect(told).toEqual([]);
    clock.advance(1000);
    expect(told).toEqual([
      { tier: 'all', why: 'full', count: 2 },
      { tier: 'all', why: 'late', count: 1 },
    ]);
    clock.advance(1000);
    stop();
    overload.enter(work());
    overload.enter(work());
    clock.advance(1000);
    expect(told).toHaveLength(2);
  });

  it('of a turn that took longer than a second, once a minute', async () => {
    open();
    for (let i = 0; i < 3; i++) {
      overload.line.tryBegin(0);
      clock.jump(1_500_000);
      await settle();
      clock.advance(1000);
    }
    const lines = log.take().filter((line) => line.includes('A turn'));
    expect(lines).toEqual([
      'warn A turn of the event loop took 1500 ms: something has blocked it, and nothing can interrupt that',
    ]);
  });

  it('of a fault of the resolver once, and counts all', () => {
    open({}, () => {
      throw new Error('no such header');
    });
    const question = { transport: 'http', method: 'GET', path: '/', headers: {} } as const;
    for (let i = 0; i < 3; i++) expect(overload.tierOf(question)).toBe(3);
    expect(overload.stats().tierFaults).toBe(3);
    expect(log.take()).toEqual([
      'warn tier throws: "no such header". Such requests have the lowest tier.',
    ]);
  });

  it('nothing, and lets all pass, when it is off or closed', () => {
    open({ enabled: false, maxInFlight: 1, maxWaiting: 1 });
    overload.line.started();
    const one = work();
    overload.enter(one);
    expect([one.ends, clock.pending, overload.stats().waiting]).toEqual([['ran'], 0, 0]);
    overload.prepare({ enabled: true, maxInFlight: 1, maxWaiting: 1 })();
    const waiting = work();
    overload.enter(waiting);
    expect(waiting.ends).toEqual([]);
    overload.close();
    expect(waiting.ends).toEqual(['ran']);
    const late = work();
    overload.enter(late);
    expect(late.ends).toEqual(['ran']);
  });

  it('refuses settings that are none, and keeps its own', () => {
    open();
    expect(() => overload.prepare({ target: '1h' })).toThrow('overload.target');
    expect(overload.settings.line.targetMicros).toBe(50_000);
    expect(() => overload.on('moon' as never, () => {})).toThrow('event');
  });
});
