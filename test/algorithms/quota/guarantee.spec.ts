import fc from 'fast-check';
import { type QuotaFigures } from '../../../lib/algorithms/quota/quota-limits.js';
import { QuotaFleet, type FleetStep } from '../../support/quota-fleet.js';
import { Till } from '../../support/quota-calls.js';
import { FAMILIES, anyHistory, figures } from '../../support/quota-histories.js';

const PACE_MICROS = 50_000;
/** The node of the app that always has more requests than tokens; the history has nodes 0 to 4. */
const BACKLOGGED = 9;
const ROUNDING = 1e-6;

interface Scene {
  readonly given: QuotaFigures;
  readonly history: FleetStep[];
  /** From this step on app 0 has a backlog of requests of this cost. */
  readonly firstStep: number;
  readonly cost: number;
}

/** The worst arrears of app 0 against `g × Δ` since its first call, and the most it had leased. */
function arrears({ given, history, firstStep, cost }: Scene): { worst: number; leased: number } {
  const fleet = new QuotaFleet(given);
  const { guaranteed } = given.apps[0]!;
  let [first, granted, counted] = [0, 0, 0];
  let [worst, leased] = [-Infinity, 0];
  const look = (): void => {
    for (const { app, tokens } of fleet.books.grants.slice(counted))
      if (app === 0) granted += tokens;
    counted = fleet.books.grants.length;
    const held = fleet.ledger.peek()?.apps[0]!.outstanding ?? 0;
    leased = Math.max(leased, held / 1e6);
  };
  for (const [index, step] of history.entries()) {
    for (let gap = step.gapMicros; index >= firstStep && gap >= 0; gap -= PACE_MICROS) {
      if (first === 0) {
        first = fleet.nowMicros;
        granted = 0;
      }
      askForAll(fleet, given, cost);
      look();
      worst = Math.max(worst, (guaranteed * (fleet.nowMicros - first)) / 1e6 - granted);
      fleet.nowMicros += Math.min(gap, PACE_MICROS);
    }
    fleet.step(index >= firstStep ? { ...step, gapMicros: 0 } : step);
    look();
  }
  return { worst, leased };
}

function askForAll(fleet: QuotaFleet, { apps }: QuotaFigures, cost: number): void {
  const { guaranteed, burst } = apps[0]!;
  const asked = { action: 'call' as const, app: 0, cost, tokens: 0, demand: burst };
  fleet.step({ ...asked, gapMicros: 0, node: BACKLOGGED, count: guaranteed + 1 });
}

/** The nodes of the history hoard, crash and borrow as they like, for the apps they serve. */
function scenes(all: fc.Arbitrary<QuotaFigures>, served: (apps: number[]) => number[]) {
  return all.chain((given) => {
    const apps = served(given.apps.map((_, index) => index));
    return fc.record({
      given: fc.constant(given),
      history: anyHistory(given, { apps: apps.length > 0 ? apps : [0], maxLength: 25 }),
      firstStep: fc.nat({ max: 10 }),
      cost: fc.constantFrom(1, given.maxCost),
    });
  });
}

describe.each(FAMILIES)('%s', (_name, all) => {
  it('an app that asks without end is granted its guarantee, whatever the others do', () => {
    const several = all.filter(({ apps }) => apps.length > 1);
    const foreign = scenes(several, (apps) => apps.slice(1));
    fc.assert(
      fc.property(foreign, (scene) => {
        // Requests pass whole or not at all: what is short of one more is granted a moment later.
        expect(arrears(scene).worst).toBeLessThan(scene.cost + ROUNDING);
      }),
      { numRuns: 150 },
    );
  });

  it('and if it has other nodes, all but what these hold or lost', () => {
    fc.assert(
      fc.property(
        scenes(all, (apps) => apps),
        (scene) => {
          // Half of the ceiling may be leased, and a request above the other half has to wait for it.
          if (scene.cost > scene.given.apps[0]!.burst / 2) return;
          const { worst, leased } = arrears(scene);
          expect(worst).toBeLessThan(scene.cost + leased + ROUNDING);
        },
      ),
      { numRuns: 100 },
    );
  });
});

it('one request in ten seconds always passes, and leaves nothing leased', () => {
  const apps = [{ guaranteed: 1, burst: 1, priority: 3 }];
  const till = new Till(figures(apps, { capacity: 10, burstRatio: 1 }, { reserveTarget: 1000 }));
  const passed = Array.from({ length: 10 }, (_, i) => till.need(i * 10_000, 1, { want: 1000 }));
  expect(passed).toEqual(passed.map(() => 1));
  expect(till.ledger.peek()!.cluster.outstanding).toBe(0);
});

describe('nodes that hoard', () => {
  const given = figures(
    [
      { guaranteed: 4500, burst: 20_000 },
      { guaranteed: 4500, burst: 20_000, elastic: true },
    ],
    { capacity: 10_000 },
  );

  it.each([
    ['one after the other', 0],
    ['with a reserve target of their own', 1000],
  ])('%s leave an app that wakes up its guarantee', (_name, reserveTarget) => {
    const till = new Till({ ...given, reserveTarget });
    let granted = 0;
    for (let pace = 0; pace <= 40; pace++) {
      for (let node = 0; node <= Math.min(pace, 20); node++) {
        till.call(pace * 50, `hoarder${node}`, { app: 1, want: 100_000, demand: 20_000 });
      }
      if (pace >= 20) granted += till.need(pace * 50, 100_000, { demand: 20_000 });
    }
    expect(granted).toBeGreaterThanOrEqual(4500);
  });

  it('of the app itself leave enough to a node of it that has nothing', () => {
    const apps = [{ guaranteed: 500, burst: 500 }];
    const till = new Till(figures(apps, { capacity: 10_000 }, { reserveTarget: 1000 }));
    let [held, granted] = [0, 0];
    for (let pace = 0; pace <= 100; pace++) {
      // It calls often enough to keep its lease for ever, and never uses it.
      held += till.call(pace * 50, 'hoarder', { want: 1000 }).apps[0]!.granted;
      granted += till.need(pace * 50, 1000, { demand: 1000 });
    }
    expect(granted).toBeGreaterThanOrEqual(2500 - held);
    expect(held).toBeLessThanOrEqual(250);
  });
});
