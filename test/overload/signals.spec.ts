import { checkOverload, type LoadProbe, type OverloadInput } from '../../lib/overload/settings.js';
import { LoadSignals, type SystemFigures } from '../../lib/overload/signals.js';
import { type LoadSample } from '../../lib/overload/events.js';
import { ManualClock, settle } from '../support/manual-clock.js';

const MIB = 2 ** 20;

/** A machine of 4 processors and 1 GiB whose figures the test sets. */
class Machine implements SystemFigures {
  cpu: number | undefined = 0;
  loop = { active: 0, idle: 0 };
  turnCount: number | undefined = 0;
  used = 100 * MIB;
  resident = 100 * MIB;
  constrained = 0;
  limits: { cpus: number | undefined; memoryBytes: number | undefined } = {
    ...{ cpus: undefined, memoryBytes: undefined },
  };
  readonly cpus = 4;
  readonly memoryBytes = 1024 * MIB;

  cpuMicros(): number {
    if (this.cpu === undefined) throw new Error('no figure');
    return this.cpu;
  }
  loopMs = () => ({ ...this.loop });
  turns = () => this.turnCount;
  heap = () => ({ used: this.used, limit: 1024 * MIB });
  rss = () => this.resident;
  constrainedBytes = () => this.constrained;
  cgroup = () => Promise.resolve(this.limits);
}

class Station {
  readonly clock = new ManualClock();
  readonly machine = new Machine();
  readonly factors: number[] = [];
  readonly samples: LoadSample[] = [];
  isNeeded = true;
  inFlight = 0;
  readonly signals: LoadSignals;

  constructor(
    input: OverloadInput = {},
    private readonly probes: readonly LoadProbe[] = [],
    prepare: (machine: Machine) => void = () => {},
  ) {
    prepare(this.machine);
    this.signals = new LoadSignals({
      clock: this.clock,
      system: this.machine,
      probes: this.probes,
      inFlight: () => this.inFlight,
      isNeeded: () => this.isNeeded,
      told: (sample) => this.samples.push(sample),
      factor: (factor) => this.factors.push(factor),
    });
    this.signals.change(checkOverload({ enabled: true, ...input }));
  }

  /** Half a second in which the process used so much of one processor, and the loop was so busy. */
  tick(cpu = 0, loop = 0, turns = 100): LoadSample {
    const { machine } = this;
    if (machine.cpu !== undefined) machine.cpu += cpu * 500_000;
    machine.loop.active += loop * 500;
    machine.loop.idle += (1 - loop) * 500;
    if (machine.turnCount !== undefined) machine.turnCount += turns;
    this.clock.advance(500);
    return this.signals.load!;
  }
}

describe('the load of this process', () => {
  it('is that of each interval, not of all the time', () => {
    const station = new Station();
    station.tick(4, 1);
    expect(station.tick(2, 0.5)).toMatchObject({ cpu: 0.5, loop: 0.5, turnMs: 2.5 });
    expect(station.tick(0, 0)).toMatchObject({ cpu: 0, loop: 0, turnMs: 0 });
    expect(station.samples).toHaveLength(3);
  });

  it('is measured against what the container allows', async () => {
    const station = new Station({}, [], (machine) => {
      machine.limits = { cpus: 0.5, memoryBytes: 200 * MIB };
    });
    await settle();
    station.tick();
    expect(station.tick(0.25)).toMatchObject({ cpu: 0.5, memory: 0.5 });
    expect(station.tick(9)).toMatchObject({ cpu: 1 });
    station.machine.limits = { cpus: 1, memoryBytes: 400 * MIB };
    for (let i = 0; i < 120; i++) station.tick();
    await settle();
    expect(station.tick(0.25)).toMatchObject({ cpu: 0.25, memory: 0.25 });
  });

  it.each([
    ['a figure without a meaning', 1.8e19, 100 / 1024],
    ['the machine, without one', 0, 100 / 1024],
    ['the runtime', 500 * MIB, 100 / 500],
  ])('takes memory of the heap or by %s', (_, constrained, memory) => {
    const station = new Station();
    station.machine.constrained = constrained;
    expect(station.tick().memory).toBeCloseTo(memory);
    station.machine.used = 900 * MIB;
    expect(station.tick().memory).toBeCloseTo(900 / 1024);
  });

  it('keeps the last good value of a signal that is missing, stuck or makes no sense', () => {
    const station = new Station();
    station.tick();
    station.tick(2, 0.5);
    station.machine.cpu = undefined;
    expect(station.tick(0, 0.25)).toMatchObject({ cpu: 0.5, loop: 0.25 });
    expect(station.signals.stale).toBe(1);
    station.machine.cpu = 0;
    station.tick();
    // It went back, as no time does.
    station.machine.cpu = -5_000_000;
    expect(station.tick()).toMatchObject({ cpu: 0.5 });
    station.machine.used = NaN;
    station.machine.resident = NaN;
    expect(station.tick().memory).toBeCloseTo(100 / 1024);
    expect(station.factors).toEqual([]);
  });

  it('begins differences anew after a gap: a suspended machine was not busy', () => {
    const station = new Station();
    station.tick(1, 0.2);
    station.tick(1, 0.2);
    station.machine.cpu! += 40_000_000;
    station.clock.advance(500 * 6 - 500);
    const before = station.samples.at(-1)!;
    expect(before.cpu).toBeLessThanOrEqual(1);
    station.isNeeded = false;
    station.clock.advance(60_000);
    station.isNeeded = true;
    expect(station.tick(4, 1)).toMatchObject({ cpu: before.cpu });
    expect(station.tick(2, 0.5)).toMatchObject({ cpu: 0.5 });
  });

  it('has no turns where the runtime does not count them', () => {
    const station = new Station();
    station.machine.turnCount = undefined;
    station.tick(1, 1);
    expect(station.tick(1, 1)).toMatchObject({ turnMs: 0, loop: 1 });
    expect(station.signals.stale).toBe(0);
  });

  it('asks probes: one of a signal takes its place, and one that fails keeps its last value', () => {
    const figures: Record<string, number | undefined> = { cpu: 0.9, queue: 12 };
    const probe = (name: string): LoadProbe => ({
      name,
      sample: () => {
        if (figures[name] === -1) throw new Error('odd');
        return figures[name];
      },
    });
    const station = new Station({}, [probe('cpu'), probe('queue'), probe('never')]);
    station.tick();
    expect(station.tick(0.1)).toMatchObject({ cpu: 0.9, probes: { queue: 12 } });
    for (const odd of [-1, NaN, undefined, Infinity]) {
      figures.queue = odd;
      expect(station.tick().probes).toEqual({ queue: 12 });
    }
    expect(station.signals.stale).toBe(4 + 6);
  });

  it('takes no promise of a probe for a figure, and its rejection ends nothing', async () => {
    const rejections: unknown[] = [];
    const listen = (error: unknown): void => void rejections.push(error);
    process.on('unhandledRejection', listen);
    const sample = (): never => Promise.reject(new Error('late')) as never;
    const station = new Station({}, [{ name: 'queue', sample }]);
    station.tick();
    expect(station.tick().probes).toEqual({});
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', listen);
    expect([station.signals.stale, rejections]).toEqual([2, []]);
  });

  it('moves the factor, and leaves limits whole when nobody measures any more', () => {
    const station = new Station();
    station.tick();
    station.machine.used = 1024 * MIB;
    station.inFlight = 1000;
    for (let i = 0; i < 20; i++) station.tick(4, 1);
    expect(station.signals).toMatchObject({ factor: 0.5, load: { score: 1, factor: 0.5 } });
    expect(station.factors[0]).toBe(0.75);
    station.signals.change(checkOverload({ enabled: false }));
    expect(station.factors.at(-1)).toBe(1);
    expect(station.signals.load).toBeUndefined();
    expect(station.clock.pending).toBe(0);
  });

  it('is not measured where nobody needs it', () => {
    const station = new Station();
    station.isNeeded = false;
    station.tick(4, 1);
    expect([station.samples, station.signals.load]).toEqual([[], undefined]);
  });

  it('has the tick of the settings', () => {
    const station = new Station({ tick: '100ms' });
    station.clock.advance(1000);
    expect(station.samples).toHaveLength(10);
    station.signals.change(checkOverload({ enabled: true, tick: '1s' }));
    station.clock.advance(1000);
    expect(station.samples).toHaveLength(11);
  });

  it('is measured of the real process, in less than half a percent of its time', async () => {
    const signals = new LoadSignals({
      clock: new ManualClock(),
      inFlight: () => 0,
      isNeeded: () => true,
      told: (sample) => samples.push(sample),
      factor: () => {},
    });
    const samples: LoadSample[] = [];
    const clock = (signals as unknown as { deps: { clock: ManualClock } }).deps.clock;
    signals.change(checkOverload({ enabled: true }));
    await settle();
    clock.advance(1000);
    const before = process.cpuUsage();
    clock.advance(500 * 1000);
    const { user, system } = process.cpuUsage(before);
    expect(samples).toHaveLength(1002);
    expect(samples.at(-1)!.memory).toBeGreaterThan(0);
    // A thousand ticks; each may take 2.5 ms of its 500.
    expect((user + system) / 1000).toBeLessThan(2500);
    signals.close();
  });
});
