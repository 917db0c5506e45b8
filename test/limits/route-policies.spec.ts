import fc from 'fast-check';
import { createRateLimiter, type RateLimiter, type RoutePolicy } from 'nestjs-weir';
import { deepFreeze } from '../../lib/common/immutable.js';
import { shared } from '../../lib/config/document/shared.js';
import { RoutePolicies } from '../../lib/limits/route-policies.js';
import { type RequestReader } from '../../lib/requests/transport.js';

const byName = (): string => 'somebody';
const tier = (): string => 'gold';
const cost = (): number => 2;

const skipIf = (): boolean => false;

const reader = { addressOf: () => '10.0.0.1' } as unknown as RequestReader;

const keyIn = (catalog: RoutePolicies, name: string): string | undefined =>
  catalog.get(name, 'a test').keyOf(undefined as never, reader, 'A.b');

/** A policy as it is applied, as far as it can be seen from outside. */
function seen(catalog: RoutePolicies, name: string): unknown {
  if (!catalog.has(name)) return undefined;
  const { keyOf: _keyOf, ...rest } = catalog.get(name, 'a test');
  return { ...rest, key: keyIn(catalog, name) };
}

describe('RoutePolicies', () => {
  const limiters: RateLimiter[] = [];
  let limiter: RateLimiter;
  let catalog: RoutePolicies;

  beforeEach(() => {
    limiter = newLimiter();
    catalog = new RoutePolicies(limiter, { user: undefined, ipv6Prefix: 64 });
    catalog.define({
      plain: { rate: '5/min', key: ['ip', { header: 'x-tenant' }] },
      custom: { rate: 1, key: ['ip', byName], tier: () => 'gold', cost: () => 2 },
    });
  });
  afterEach(() => Promise.all(limiters.splice(0).map((one) => one.close())));

  function newLimiter(): RateLimiter {
    limiters.push(createRateLimiter());
    return limiters.at(-1)!;
  }

  /** One whose policies a document decides about, beside functions of the code. */
  function catalogOf(): RoutePolicies {
    const one = new RoutePolicies(newLimiter(), { user: undefined, ipv6Prefix: 64 });
    one.define({
      plain: { rate: 1, key: 'route' },
      custom: { rate: 1, key: byName, tier, cost, skipIf },
    });
    one.govern();
    return one;
  }

  it('leaves alone what came after it was written down', () => {
    expect(Object.keys(catalog.govern())).toEqual(['plain', 'custom']);
    catalog.defineInline('late', { rate: 1 });
    catalog.prepare({ plain: { rate: 1 }, custom: { rate: 2 } })();
    expect(catalog.has('late')).toBe(true);
  });

  it('changes a policy where routes hold on to it, once all is checked', () => {
    const plain = catalog.use('plain', '@RateLimit on A.b');
    const before = plain.keyOf;
    const commit = catalog.prepare({ plain: { rate: 1, key: 'global' }, custom: { rate: 2 } });
    expect(plain.keyOf).toBe(before);
    commit();
    expect(plain.keyOf(undefined as never, undefined as never, 'A.b')).toBe('global');
    expect(catalog.get('plain', 'a test')).toBe(plain);
  });

  it('goes on with functions of the code where nothing takes their place', () => {
    const { tier, cost } = catalog.get('custom', 'a test');
    catalog.prepare({ plain: { rate: 1 }, custom: { rate: 2, tier: 'silver' } })();
    expect(catalog.get('custom', 'a test')).toMatchObject({ tier: 'silver', cost });
    catalog.prepare({ plain: { rate: 1 }, custom: { rate: 2 } })();
    expect(catalog.get('custom', 'a test')).toMatchObject({ tier, cost });
  });

  it('comes to the same whether documents share their policies or not', () => {
    const names = ['plain', 'custom', 'toString', 'other'];
    const given = fc.record(
      {
        rate: fc.constantFrom(1, 2),
        key: fc.constantFrom<RoutePolicy['key']>('global', 'route', ['global', 'route']),
        tier: fc.constantFrom('silver', 'gold'),
        cost: fc.constantFrom(1, 2),
      },
      { requiredKeys: ['rate'] },
    );
    const document = fc.uniqueArray(fc.tuple(fc.constantFrom(...names), given), {
      selector: ([name]) => name,
    });
    fc.assert(
      fc.property(fc.array(document, { maxLength: 6 }), (documents) => {
        const [short, long] = [catalogOf(), catalogOf()];
        let known: unknown;
        for (const one of documents) {
          const next = Object.fromEntries(one);
          known = deepFreeze(shared(known, structuredClone(next)));
          short.prepare(known as typeof next)();
          long.prepare(next)();
          expect(names.map((name) => seen(short, name))).toEqual(
            names.map((name) => seen(long, name)),
          );
        }
      }),
    );
  });

  it('holds a document against what the one before said then, not what became of it', () => {
    const mutable: Record<string, RoutePolicy> = { plain: { rate: 1, key: 'route' } };
    catalog.prepare(mutable)();
    mutable['plain']!.key = 'global';
    catalog.prepare(deepFreeze({ plain: { rate: 1, key: 'global' } }))();
    expect(keyIn(catalog, 'plain')).toBe('global');
  });

  it('forgets a policy that has the name of what all objects have', () => {
    catalog.prepare({ plain: { rate: 1 }, toString: { rate: 1 } })();
    expect(catalog.has('toString')).toBe(true);
    catalog.prepare({ plain: { rate: 1 } })();
    expect(catalog.has('toString')).toBe(false);
  });

  it('tells the names that there will be: not what goes, but what others have defined', () => {
    catalog.govern();
    limiter.define({ own: { rate: 1 } });
    const document = { plain: { rate: 1 }, extra: { rate: 1 } };
    expect(catalog.namesWith(document).sort()).toEqual(['extra', 'own', 'plain']);
    expect(catalog.has('custom')).toBe(true);
  });

  it('adds and forgets what nobody names', () => {
    catalog.govern();
    catalog.use('plain', 'apply');
    catalog.prepare({ plain: { rate: 1 }, extra: { rate: 1 } })();
    expect(catalog.has('extra')).toBe(true);
    expect(catalog.has('custom')).toBe(false);
  });

  it.each<[string, Record<string, RoutePolicy>, RegExp]>([
    ['a policy in use that disappears', { custom: { rate: 1 } }, /policies\.plain.*A\.b names it/],
    [
      'a middleware that is not mounted',
      { plain: { rate: 1, early: true } },
      /policies\.plain\.early.*false, as it was/,
    ],
    ['a key that is none', { plain: { rate: 1, key: 'nobody' as 'ip' } }, /policies\.plain\.key/],
  ])('refuses %s, and changes nothing', (_, document, message) => {
    catalog.govern();
    const { keyOf } = catalog.use('plain', '@RateLimit on A.b');
    expect(() => catalog.prepare(document)).toThrow(message);
    expect(catalog.get('plain', 'a test').keyOf).toBe(keyOf);
    expect(catalog.has('custom')).toBe(true);
  });

  it('keeps all policies of the code where a function chooses among them', () => {
    catalog.govern();
    catalog.useAll('the choice of A.b');
    expect(() => catalog.prepare({ plain: { rate: 1 } })).toThrow(
      /policies\.custom.*choice of A\.b/,
    );
  });
});
