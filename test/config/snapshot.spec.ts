import fc from 'fast-check';
import { InvalidConfigError } from '../../lib/common/errors.js';
import { deepFreeze } from '../../lib/common/immutable.js';
import { type ConfigSnapshot } from '../../lib/config/rate-limit-config.js';
import { snapshotOf } from '../../lib/config/snapshot.js';
import { patched } from '../../lib/config/layers.js';
import { type ConfigLayers } from '../../lib/stores/config-store.js';

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

/** The document of the snapshot, or all its issues. */
function outcome(make: () => ConfigSnapshot): unknown {
  try {
    const { document, hash, profile } = make();
    return { document, hash, profile };
  } catch (error) {
    if (error instanceof InvalidConfigError) return error.issues;
    throw error;
  }
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
      { numRuns: 150 },
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
