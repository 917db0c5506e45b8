import fc from 'fast-check';
import { InvalidConfigError } from '../../lib/common/errors.js';
import { deepFreeze } from '../../lib/common/immutable.js';
import { type ConfigSnapshot } from '../../lib/config/rate-limit-config.js';
import { snapshotOf } from '../../lib/config/snapshot.js';
import { patched } from '../../lib/config/layers.js';
import { type ConfigLayers, type JsonObject } from '../../lib/stores/config-store.js';

const GROUND: ConfigLayers = {
  code: {
    shop: {
      version: null,
      document: {
        cluster: { capacity: 1000 },
        apps: { shop: { guaranteed: 400 }, search: { guaranteed: 200 } },
        policies: { api: { rate: 10 }, web: { rate: '100/min', tiers: { vip: 500 } } },
        protection: { db: { deadline: 1000 } },
        profiles: {
          promo: { policies: { api: { rate: 50 } } },
          sale: { policies: { web: { key: { header: 'x-shop' } } } },
        },
      },
    },
  },
  file: {},
  patch: {},
};

const policy = fc.constantFrom<unknown>(
  ...[{ rate: 20 }, { rate: '5/s' }, { burst: 3 }, { tiers: { vip: 1 } }, { rate: 10 }, null],
  ...[{ rate: 'many' }, { rate: 5, burst: 0 }, { ratee: 5 }, { early: true, key: 'user' }, 7],
  ...[{ key: { param: 'query.q' } }, { key: 'ip' }, { key: { header: 'x-shop' } }, { key: null }],
);
const app = fc.constantFrom<unknown>({ guaranteed: 100 }, { guaranteed: 900 }, null, {
  burst: 'x',
});
const degradation = fc.constantFrom<unknown>(
  ...[{ slow: '1s' }, { slow: 'soon' }, { slow: '3s', deadline: '2s' }, { coreFields: ['id'] }],
  ...[{ coreFields: [] }, { coreFields: [7] }, { recovery: { steps: [10, 100] } }],
  ...[{ recovery: { steps: [100, 10] } }, { resources: { page: { level: 3 } } }, null],
  ...[{ resources: { page: { level: 5 } } }, { resources: { 'no name': {} } }],
);
const patch = fc.oneof(
  fc.record({
    policies: fc.dictionary(fc.constantFrom('api', 'web', 'new', 'no name', 'toString'), policy),
  }),
  fc.record({ degradation }),
  fc.record({ apps: fc.dictionary(fc.constantFrom('shop', 'search', 'cart'), app) }),
  fc.constantFrom<object>(
    ...[{ cluster: { capacity: 500 } }, { cluster: { capacity: 2000 } }, { cluster: null }],
    ...[{ profile: 'promo' }, { profile: 'normal' }, { profile: 'none' }, { version: 3 }],
    ...[{ profile: 'sale' }, { profile: null }, { profiles: null }, { profiles: { sale: null } }],
    ...[{ protection: { db: { rate: 'api' } } }, { protection: { db: { rate: 'nobody' } } }],
    ...[{ protection: { api: { rate: 5 } } }, { profiles: { promo: { apps: { shop: null } } } }],
  ),
);

/** What follows, or everything that is wrong with it. */
function outcome(make: () => ConfigSnapshot): unknown {
  try {
    const { document, hash, profile } = make();
    return { document, hash, profile };
  } catch (error) {
    if (error instanceof InvalidConfigError) return error.issues;
    throw error;
  }
}

/** One of each kind of field. */
const PARTS = {
  cluster: { id: 'main', capacity: 1000, burstRatio: 2, pace: '50ms' },
  apps: { shop: { guaranteed: 100, priority: 2, elastic: true } },
  policies: {
    api: { rate: 10, key: { header: 'x-shop' }, tiers: { vip: 500, slow: { rate: 1, burst: 2 } } },
    web: {
      rate: '5/s',
      key: ['ip', { param: 'query.q' }],
      algorithm: 'leaky-bucket',
      early: false,
    },
  },
  degradation: {
    ...{ slow: '1s', refreshAfter: 0.5, coreFields: ['id'], recovery: { steps: [10, 100] } },
    resources: { page: { level: 3, mode: 'forced', recovery: { tolerance: 0.1 } } },
  },
  protection: {
    cache: 'redis',
    db: { deadline: false, breaker: { window: { calls: 20 }, errorRate: 0.5 }, rate: 'api' },
  },
};

const EMPTY: ConfigLayers = { code: {}, file: {}, patch: {} };

const VALUES: readonly unknown[] = [
  ...[null, true, false, -1, 0.5, 3, 101, '5/s', '2s', 'ip', [], ['ip'], [10, 100]],
  ...[{}, { rate: 1 }, { header: 'x' }, { calls: 5 }, { any: 1 }],
];

/** The paths of all values, those that hold others too. */
function pathsIn(value: unknown, at: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== 'object' || value === null) return [at];
  const below = Object.entries(value).flatMap(([name, one]) => pathsIn(one, [...at, name]));
  return at.length === 0 ? below : [at, ...below];
}

/** A copy in which something else stands at a place; nothing at all if that is null. */
function replaced(value: object, [name, ...rest]: readonly string[], by: unknown): JsonObject {
  const copy = copyOf(value) as Record<string, unknown>;
  if (rest.length > 0) copy[name!] = replaced(copy[name!] as object, rest, by);
  else if (by === null) delete copy[name!];
  else copy[name!] = by;
  return copy as JsonObject;
}

const copyOf = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

describe('snapshotOf', () => {
  it('is the same whether it remembers the one before or not', () => {
    fc.assert(
      fc.property(fc.array(patch, { minLength: 1, maxLength: 8 }), (patches) => {
        let layers = deepFreeze(copyOf(GROUND));
        let known = snapshotOf(layers, 1);
        patches.forEach((one, n) => {
          const next = deepFreeze(patched(layers, one as Record<string, unknown>));
          const revision = n + 2;
          const found = outcome(() => snapshotOf(next, revision, { known }));
          expect(found).toEqual(outcome(() => snapshotOf(copyOf(next), revision, {})));
          if (Array.isArray(found)) return;
          layers = next;
          known = snapshotOf(layers, revision, { known });
        });
      }),
      { numRuns: 300 },
    );
  });

  it('looks again at whatever kind of field has changed, also in a profile', () => {
    const patch = { ...PARTS, profiles: { sale: PARTS } };
    const known = snapshotOf(deepFreeze(copyOf({ ...EMPTY, patch })), 1);
    fc.assert(
      fc.property(fc.constantFrom(...pathsIn(patch)), fc.constantFrom(...VALUES), (at, value) => {
        const layers = deepFreeze({ ...EMPTY, patch: replaced(patch, at, value) });
        const found = outcome(() => snapshotOf(layers, 2, { known }));
        expect(found).toEqual(outcome(() => snapshotOf(layers, 2, {})));
      }),
      { numRuns: 400 },
    );
  });

  it('shares what an update has left alone with the one before', () => {
    const layers = deepFreeze(copyOf(GROUND));
    const known = snapshotOf(layers, 1);
    const told = copyOf(patched(layers, { policies: { api: { rate: 11 } } }));
    const { document } = snapshotOf(told, 2, { known });
    expect(document.policies!['api']).toEqual({ rate: 11 });
    expect(document.policies!['web']).toBe(known.document.policies!['web']);
    expect(document.apps).toBe(known.document.apps);
    expect(document.cluster).toBe(known.document.cluster);
  });
});
