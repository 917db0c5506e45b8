import fc from 'fast-check';
import { compileQuota, type QuotaFigures } from '../../../lib/algorithms/quota/quota-limits.js';
import { QuotaFleet, type FleetStep } from '../../support/quota-fleet.js';
import {
  anyFigures,
  anyHistory,
  figures,
  isValid,
  mostBeyond,
  withoutCluster,
} from '../../support/quota-histories.js';
import { Till } from '../../support/quota-calls.js';

const ROUNDING = 1e-6;
const UNITS = 1e6;
/** So many apps may come beside those of the beginning. */
const ADDED = 2;

/** How the figures of the beginning are changed. */
interface Change {
  readonly factor: number;
  readonly keeps: readonly boolean[];
  readonly adds: readonly number[];
  readonly burstRatio: number;
  readonly leaseTtlMs: number;
}

interface ChangingScene {
  readonly given: QuotaFigures;
  readonly parts: readonly { readonly change: Change; readonly history: readonly FleetStep[] }[];
}

function changes(burstRatio: fc.Arbitrary<number>): fc.Arbitrary<Change> {
  return fc.record({
    factor: fc.constantFrom(0.1, 0.5, 0.5, 1, 2, 3),
    keeps: fc.oneof(fc.constant([true]), fc.array(fc.boolean(), { minLength: 1, maxLength: 4 })),
    adds: fc.uniqueArray(fc.nat({ max: ADDED - 1 }), { maxLength: ADDED }),
    burstRatio,
    leaseTtlMs: fc.constantFrom(200, 1000, 1000, 3000),
  });
}

function scenes(all: fc.Arbitrary<QuotaFigures>, most: number): fc.Arbitrary<ChangingScene> {
  return all.chain((given) => {
    const apps = Array.from({ length: given.apps.length + ADDED }, (_, index) => index);
    const history = anyHistory(given, { apps, maxLength: 20 });
    const part = fc.record({ change: changes(fc.constantFrom(1, 1.2, 2)), history });
    return fc.record({
      given: fc.constant(given),
      parts: fc.array(part, { minLength: 2, maxLength: most + 1 }),
    });
  });
}

/** The same quota for a larger or smaller cluster, with some apps less and some more. */
function changed(given: QuotaFigures, change: Change): QuotaFigures {
  const scaled = (figure: number): number => Math.max(1, Math.round(figure * change.factor));
  const { cluster, apps } = given;
  const { keeps, burstRatio, leaseTtlMs } = change;
  const kept = apps.filter((_, index) => keeps[index % keeps.length]);
  const added = change.adds.map((name) => ({ ...apps[0]!, app: `added-${name}` }));
  const next = [...kept, ...added].map((app) => {
    const guaranteed = scaled(app.guaranteed);
    return { ...app, guaranteed, burst: Math.max(guaranteed, scaled(app.burst)) };
  });
  return {
    ...given,
    cluster: cluster && { ...cluster, burstRatio, capacity: scaled(cluster.capacity) },
    apps: next,
    leaseTtlMs,
  };
}

/** The changes and their instants, as far as a bound needs to know them. Tokens and tokens per second. */
interface Stage {
  readonly admissionsBefore: number;
  readonly capacity: number;
  readonly depth: number;
  readonly outstanding: number;
}

function play({ given, parts }: ChangingScene): { fleet: QuotaFleet; stages: Stage[] } {
  const fleet = new QuotaFleet(given);
  const stages: Stage[] = [];
  const note = (): void => {
    const { capacity, depth } = fleet.limits;
    const outstanding = (fleet.ledger.peek()?.cluster.outstanding ?? 0) / UNITS;
    const admissionsBefore = fleet.admissions.length;
    stages.push({ admissionsBefore, capacity, depth: depth / UNITS, outstanding });
  };
  note();
  for (const [turn, { change, history }] of parts.entries()) {
    const next = changed(given, change);
    // Limits that the configuration refuses never get here.
    if (turn > 0 && next.apps.length > 0 && isValid(next)) {
      fleet.change(next);
      note();
    }
    for (const step of history) {
      fleet.step({ ...step, app: step.app % fleet.limits.apps.length });
    }
  }
  return { fleet, stages };
}

const SIZES: [string, fc.Arbitrary<QuotaFigures>][] = [
  ['100 per second', anyFigures(100)],
  ['10,000 per second', anyFigures(10_000)],
];

describe.each(SIZES)('limits that change: %s', (_name, all) => {
  // The books of the fleet hold every account against the ledger, after every call and every change:
  // nothing is negative, nothing is in two accounts, and what was granted is used, open or destroyed.

  it('once: admitted in any Δ is within the larger limits; from then on within the new ones', () => {
    fc.assert(
      fc.property(scenes(all, 1), (scene) => {
        const { fleet, stages } = play(scene);
        const largest = Math.max(...stages.map(({ capacity }) => capacity));
        const deepest = Math.max(...stages.map(({ depth }) => depth));
        expect(mostBeyond(fleet.admissions, largest)).toBeLessThanOrEqual(deepest + ROUNDING);
        const { admissionsBefore, capacity, depth, outstanding } = stages.at(-1)!;
        const since = fleet.admissions.slice(admissionsBefore);
        // Tokens leased by then may still be used, and nothing comes on top of them.
        const most = Math.max(depth, outstanding);
        expect(mostBeyond(since, capacity)).toBeLessThanOrEqual(most + ROUNDING);
      }),
      { numRuns: 250 },
    );
  });

  it('again and again: each rise adds no more than the depth that it adds', () => {
    fc.assert(
      fc.property(scenes(all, 5), (scene) => {
        const { fleet, stages } = play(scene);
        const largest = Math.max(...stages.map(({ capacity }) => capacity));
        const deepest = Math.max(...stages.map(({ depth }) => depth));
        const raised = stages
          .slice(1)
          .reduce((sum, { depth }, i) => sum + Math.max(0, depth - stages[i]!.depth), 0);
        const most = deepest + raised + ROUNDING;
        expect(mostBeyond(fleet.admissions, largest)).toBeLessThanOrEqual(most);
      }),
      { numRuns: 150 },
    );
  });
});

describe('limits that change without a cluster', () => {
  it('hold each app to the larger of its ceilings, also one that is gone and back', () => {
    const all = anyFigures(1000).map((given) => withoutCluster(given));
    fc.assert(
      fc.property(scenes(all, 1), (scene) => {
        const { fleet } = play(scene);
        const factor = Math.max(1, ...scene.parts.map(({ change }) => change.factor));
        for (const [index, { app }] of fleet.limits.apps.entries()) {
          const known = scene.given.apps.find((one) => one.app === app) ?? scene.given.apps[0]!;
          const burst = Math.round(known.burst * factor);
          const own = fleet.admissions.filter((one) => one.app === index);
          const deepest = Math.max(burst, scene.given.maxCost);
          expect(mostBeyond(own, burst)).toBeLessThanOrEqual(deepest + ROUNDING);
        }
      }),
      { numRuns: 250 },
    );
  });
});

describe('a cluster that is left out of the limits, or comes with them', () => {
  const SHARED = figures([{ guaranteed: 100, burst: 5000, elastic: true }], { capacity: 1000 });
  const AT_100_MS = 1_700_000_000_100_000;
  const other = (given: QuotaFigures) => compileQuota(given, undefined, 1);

  it('leaves no overload behind: an app has all of its ceiling', () => {
    const till = new Till(SHARED);
    till.ask(0, { demand: 9000 });
    expect(till.call(100, 'a', { demand: 9000 })).toMatchObject({ overloaded: true });
    till.ledger.change(AT_100_MS, other(withoutCluster(SHARED)));
    const reply = till.call(100, 'a', { demand: 9000, count: 3000 });
    expect(reply).toMatchObject({ overloaded: false, apps: [{ needs: [3000], share: 0 }] });
  });

  it('knows of an overload from the first call on', () => {
    const till = new Till(withoutCluster(SHARED));
    expect(till.call(0, 'a', { demand: 9000 })).toMatchObject({ overloaded: false });
    till.ledger.change(AT_100_MS, other(SHARED));
    expect(till.call(100, 'a', { demand: 9000 })).toMatchObject({ overloaded: true });
  });
});

describe('an app that is added, taken away, or back', () => {
  const TWO = figures([{ app: 'a' }, { app: 'b' }]);
  const ONE = figures([{ app: 'a' }]);
  const at = (ms: number): number => 1_700_000_000_000_000 + ms * 1000;

  it('begins full, as with a new cluster, and leaves the others as they are', () => {
    const till = new Till(ONE);
    till.need(0, 1000);
    const before = { ...till.ledger.peek()!.apps[0]! };
    till.ledger.change(at(0), compileQuota(TWO, ['a', 'b'], 1));
    expect(till.ledger.peek()!.apps[0]).toMatchObject({ used: before.used, room: before.room });
    expect(till.call(0, 'a', { app: 1, count: 100 }).apps[0]).toMatchObject({ needs: [100] });
  });

  it('begins empty while leases from before a loss may be in use', () => {
    const till = new Till(ONE);
    till.ledger.settle(at(0), {
      ...{ node: 'n', incarnation: '1', seq: 1, seenEpoch: 5, seenSequence: 1, leaving: false },
      apps: [],
    });
    till.ledger.change(at(0), compileQuota(TWO, ['a', 'b'], 1));
    expect(till.call(0, 'a', { app: 1, count: 1 }).apps[0]).toMatchObject({ needs: [0] });
  });

  it('grants nothing when it is gone, not even what it gives back, and earns anew when it is back', () => {
    const till = new Till(TWO);
    till.call(0, 'a', { app: 1, want: 1000 });
    till.ledger.change(at(1), compileQuota(ONE, ['a', 'b'], 1));
    const reply = till.call(1, 'a', { app: 1, used: 200, returned: 800, count: 1, want: 50 });
    expect(reply.apps[0]).toMatchObject({ needs: [0], granted: 0 });
    expect(till.ledger.peek()!.apps[1]).toMatchObject({ outstanding: 0, room: 0, stock: 0 });
    till.ledger.change(at(1), compileQuota(TWO, ['a', 'b'], 2));
    expect(till.call(1, 'a', { app: 1, count: 1 }).apps[0]).toMatchObject({ needs: [0] });
    expect(till.call(2, 'a', { app: 1, count: 20 }).apps[0]).toMatchObject({ needs: [20] });
  });

  it('under the number of another app is a loss: whose the tokens are cannot be told', () => {
    const till = new Till(TWO);
    const { epoch } = till.call(0, 'a', { want: 10 });
    till.ledger.change(at(1), compileQuota(TWO, ['b', 'a'], 1));
    const reply = till.call(1, 'a', { want: 10 });
    expect(reply).toMatchObject({ epoch: epoch + 1, revision: 1 });
    expect(reply.apps[0]).toMatchObject({ granted: 0 });
  });
});
