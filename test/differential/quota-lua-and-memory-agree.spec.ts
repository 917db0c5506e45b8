import fc from 'fast-check';
import { type Redis } from 'ioredis';
import {
  type AppFigures,
  type ClusterFigures,
  type QuotaFigures,
} from '../../lib/algorithms/quota/quota-limits.js';
import { type Need } from '../../lib/algorithms/quota/quota-protocol.js';
import { startRedis, stopAll } from '../support/index.js';
import {
  connectTo,
  QuotaPair,
  type Answers,
  type AppStep,
  type QuotaStep,
  type QuotaStepKind,
} from '../support/quota-differential.js';

const STEPS = 100_000;
const STEPS_PER_QUOTA = 250;
const NODES = 5;
const HOUR_MICROS = 3_600_000_000;
/** So many apps come and go beside those of the beginning. */
const ADDED = 3;

const size = fc.oneof(
  fc.integer({ min: 1, max: 20 }),
  fc.integer({ min: 1, max: 5000 }),
  fc.integer({ min: 1, max: 2_000_000 }),
  fc.constantFrom(1, 100, 1000, 1_000_000),
);

function clusterFigures(capacity: number): fc.Arbitrary<ClusterFigures> {
  return fc.record({
    capacity: fc.constant(capacity),
    burstRatio: fc.constantFrom(1, 1.01, 1.2, 1.5, 2, 3),
    reservedRatio: fc.constantFrom(0, 0.05, 0.1, 0.2),
  });
}

/** Mostly a share of the capacity; now and then nothing is sure, or more than there is. */
function appFigures(capacity: number, apps: number): fc.Arbitrary<AppFigures> {
  const fair = Math.ceil(capacity / apps);
  const guaranteed = fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 0, max: fair }) },
    { weight: 1, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 2 * capacity }) },
  );
  const beyond = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 2 * capacity }));
  return fc
    .record({
      guaranteed,
      beyond,
      burstDurationMs: fc.oneof(fc.constantFrom(1000, 60_000), fc.integer({ min: 1, max: 10_000 })),
      priority: fc.integer({ min: 0, max: 3 }),
      elastic: fc.boolean(),
    })
    .map(({ beyond: more, ...figures }) => ({
      ...figures,
      app: 'some',
      burst: Math.max(1, figures.guaranteed + more),
    }));
}

const quotas: fc.Arbitrary<QuotaFigures> = fc
  .tuple(size, fc.integer({ min: 1, max: 6 }))
  .chain(([capacity, apps]) =>
    fc.record({
      cluster: fc.option(clusterFigures(capacity), { nil: undefined, freq: 5 }),
      apps: fc
        .array(appFigures(capacity, apps), { minLength: apps, maxLength: apps })
        .map((all) => all.map((one, index) => ({ ...one, app: `app-${index}` }))),
      maxCost: fc.oneof(
        fc.integer({ min: 1, max: 10 }),
        fc.integer({ min: 1, max: Math.ceil(1.5 * capacity) }),
      ),
      paceMs: fc.constantFrom(10, 50, 100),
      leaseTtlMs: fc.constantFrom(200, 1000, 3000),
      reserveTarget: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2 * capacity })),
    }),
  );

function scaleOf({ cluster, apps }: QuotaFigures): number {
  return cluster?.capacity ?? Math.max(...apps.map(({ burst }) => burst));
}

function needs(figures: QuotaFigures): fc.Arbitrary<Need> {
  const most = Math.ceil(scaleOf(figures) / 10);
  return fc.record({
    cost: fc.oneof(
      fc.constant(1),
      fc.integer({ min: 1, max: Math.min(5, figures.maxCost) }),
      fc.integer({ min: 1, max: figures.maxCost }),
    ),
    count: fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: most })),
  });
}

/** Demand is on both sides of 85 and 90 % of the capacity, once it has been summed up. */
function appSteps(figures: QuotaFigures): fc.Arbitrary<AppStep> {
  const scale = scaleOf(figures);
  const fair = Math.ceil((2 * scale) / (figures.apps.length * NODES));
  const permille = fc.oneof(
    fc.constantFrom(0, 1000),
    fc.integer({ min: 0, max: 1000 }),
    fc.integer({ min: 0, max: 3000 }),
  );
  return fc.record({
    app: fc.integer({ min: 0, max: figures.apps.length + ADDED - 1 }),
    usedPermille: permille,
    returnedPermille: fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, permille),
    refunded: nowAndThen(scale),
    late: nowAndThen(scale),
    lateByMicros: fc.oneof(fc.nat({ max: 50_000 }), fc.integer({ min: -50_000, max: 3_000_000 })),
    owed: nowAndThen(scale),
    demand: fc.oneof(
      { weight: 4, arbitrary: fc.integer({ min: 0, max: 2 * fair }) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 2 * scale }) },
      { weight: 1, arbitrary: fc.constant(0) },
    ),
    needs: fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(needs(figures), { maxLength: 3 }) },
    ),
    want: fc.oneof(
      fc.constant(0),
      fc.integer({ min: 0, max: Math.ceil(scale / 20) }),
      fc.integer({ min: 0, max: 2 * scale }),
    ),
  });
}

function nowAndThen(most: number): fc.Arbitrary<number> {
  return fc.oneof(
    { weight: 6, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: most }) },
  );
}

function kinds(): fc.Arbitrary<QuotaStepKind> {
  const weights: [QuotaStepKind, number][] = [
    ['call', 160],
    ['again', 16],
    ['skip', 6],
    ['leave', 6],
    ['restart', 4],
    ['behind', 4],
    ['ahead', 1],
    ['loss', 1],
    ['change', 2],
  ];
  return fc.oneof(...weights.map(([kind, weight]) => ({ weight, arbitrary: fc.constant(kind) })));
}

/** Gaps on the scale of a token, of a tick and of a lease; silence beyond it; and clock steps. */
function steps(figures: QuotaFigures): fc.Arbitrary<QuotaStep> {
  const perToken = Math.ceil(2_000_000 / scaleOf(figures));
  const ttlMicros = figures.leaseTtlMs * 1000;
  return fc.record({
    gapMicros: fc.oneof(
      { weight: 3, arbitrary: fc.constant(0) },
      { weight: 4, arbitrary: fc.integer({ min: 0, max: perToken }) },
      { weight: 8, arbitrary: fc.integer({ min: 0, max: 60_000 }) },
      { weight: 1, arbitrary: fc.constantFrom(99_999, 100_000, ttlMicros) },
      { weight: 1, arbitrary: fc.integer({ min: 0, max: 2 * ttlMicros }) },
      { weight: 1, arbitrary: fc.integer({ min: -ttlMicros, max: 0 }) },
      { weight: 1, arbitrary: fc.constantFrom(-1_000_000, -1_000_001) },
      { weight: 1, arbitrary: fc.integer({ min: -HOUR_MICROS, max: HOUR_MICROS }) },
    ),
    kind: kinds(),
    node: fc.integer({ min: 0, max: NODES - 1 }),
    by: fc.integer({ min: 1, max: 20 }),
    apps: fc.array(appSteps(figures), { maxLength: figures.apps.length }),
    limits: fc.record({
      by: fc.oneof(fc.constantFrom(5, 10, 20), fc.integer({ min: 1, max: 20 })),
      keeps: fc.oneof(fc.constant([true]), fc.array(fc.boolean(), { minLength: 1, maxLength: 6 })),
      adds: fc.uniqueArray(fc.nat({ max: ADDED - 1 }), { maxLength: ADDED }),
      leaseTtlMs: fc.oneof(fc.constant(figures.leaseTtlMs), fc.constantFrom(200, 1000, 3000)),
      togglesCluster: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, fc.constant(true)),
    }),
  });
}

/** A store without limits is asked twice; until it has them, no other call may overtake. */
async function answersTo(pair: QuotaPair, history: readonly QuotaStep[]): Promise<Answers[]> {
  const asked: Answers[] = [];
  for (const step of history) {
    if (step.kind === 'change') {
      await Promise.all(asked.map((answers) => answers.lua));
      await pair.change(step.limits);
    }
    const answers = pair.step(step);
    asked.push(answers);
    if (asked.length === 1 || ['loss', 'change'].includes(step.kind)) await answers.lua;
  }
  return asked;
}

describe('the lease script and the quota ledger', () => {
  let client: Redis;

  beforeAll(async () => {
    const redis = await startRedis();
    client = await connectTo(redis.adminUrl);
  });

  afterAll(async () => {
    client.disconnect();
    await stopAll();
  });

  it(`agree over ${STEPS.toLocaleString('en')} random calls`, async () => {
    const seed = Number(process.env.WEIR_SEED ?? Date.now() % 2 ** 31);
    const figures = fc.sample(quotas, { numRuns: STEPS / STEPS_PER_QUOTA, seed });
    for (const [index, quota] of figures.entries()) {
      const pair = new QuotaPair(quota, client);
      const history = fc.sample(steps(quota), { numRuns: STEPS_PER_QUOTA, seed: seed + index });
      const asked = await answersTo(pair, history);
      const lua = await Promise.all(asked.map((answers) => answers.lua));
      const at = asked.findIndex(({ memory }, i) => !isSame(memory, lua[i]));
      if (at === -1) {
        const books = await pair.books();
        expect({ seed, index, quota, books: books.lua }).toEqual({
          seed,
          index,
          quota,
          books: books.memory,
        });
        continue;
      }
      // All later disagreements follow from the first one.
      const { memory, call } = asked[at]!;
      expect({ seed, index, at, quota, step: history[at], call, reply: lua[at] }).toEqual({
        ...{ seed, index, at, quota, step: history[at], call },
        reply: memory,
      });
    }
  }, 120_000);

  it('agree in histories that shrink', async () => {
    const histories = quotas.chain((quota) =>
      fc.tuple(fc.constant(quota), fc.array(steps(quota), { maxLength: 30 })),
    );
    await fc.assert(
      fc.asyncProperty(histories, async ([quota, history]) => {
        const pair = new QuotaPair(quota, client);
        for (const { memory, lua } of await answersTo(pair, history)) {
          expect(await lua).toEqual(memory);
        }
        if (history.length === 0) return;
        const books = await pair.books();
        expect(books.lua).toEqual(books.memory);
      }),
      { numRuns: 300 },
    );
  });
});

function isSame(memory: unknown, lua: unknown): boolean {
  return JSON.stringify(memory) === JSON.stringify(lua);
}
