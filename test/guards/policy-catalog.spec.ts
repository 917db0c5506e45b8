import { createRateLimiter, type RateLimiter, type RoutePolicy } from 'nestjs-weir';
import { PolicyCatalog } from '../../lib/guards/policy-catalog.js';

const byName = (): string => 'somebody';

describe('PolicyCatalog', () => {
  let limiter: RateLimiter;
  let catalog: PolicyCatalog;

  beforeEach(() => {
    limiter = createRateLimiter();
    catalog = new PolicyCatalog(limiter, { user: undefined, ipv6Prefix: 64 });
    catalog.define({
      plain: { rate: '5/min', key: ['ip', { header: 'x-tenant' }] },
      custom: { rate: 1, key: ['ip', byName], tier: () => 'gold', cost: () => 2 },
    });
  });
  afterEach(() => limiter.close());

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
