import { tierByPath, type TierRequest } from 'nestjs-weir';
import { InvalidArgumentError } from '../../lib/common/errors.js';
import { checkOverload } from '../../lib/overload/settings.js';
import { PASSES, Tiers } from '../../lib/overload/tiers.js';

const question = (path: string, method = 'GET', headers = {}): TierRequest => ({
  transport: 'http',
  ...{ path, method, headers },
});

describe('tierByPath', () => {
  const tier = tierByPath(
    {
      'POST /orders': 'S',
      '/orders': 'A',
      'GET /orders/*': 'A',
      '/recommendations/*': 'C',
      '/recommendations/top/*': 'B',
      'shop.order.*': 'S',
    },
    'B',
  );

  it.each([
    ['POST', '/orders', 'S'],
    ['GET', '/orders', 'A'],
    ['GET', '/orders/7', 'A'],
    ['PUT', '/orders/7', 'B'],
    ['GET', '/recommendations/', 'C'],
    ['GET', '/recommendations', 'B'],
    ['GET', '/recommendations/top/3', 'B'],
    ['GET', '/elsewhere', 'B'],
    ['shop.order.paid', 'shop.order.paid', 'S'],
  ])('%s %s is of tier %s', (method, path, expected) => {
    expect(tier(question(path, method))).toBe(expected);
  });

  it('has no tier of its own for the rest unless it is told', () => {
    expect(tierByPath({ '/a': 'S' })(question('/b'))).toBeUndefined();
  });

  it.each([
    [{ '': 'S' }],
    [{ '/a/*/b': 'S' }],
    [{ 'POST  /a': 'S' }],
    [{ '/a': '' }],
    [{ '/a': 5 }],
    [null],
    [['/a']],
  ])('refuses %j', (routes) => {
    expect(() => tierByPath(routes as never)).toThrow(InvalidArgumentError);
  });
});

describe('the tier of a request', () => {
  const faults: string[] = [];
  const settings = checkOverload({});
  const tiersBy = (resolver?: (question: TierRequest) => unknown, isExempt?: () => boolean) =>
    new Tiers(settings, resolver as never, isExempt, (fault, _, of) =>
      faults.push(of === 'tier' ? fault : `${of} ${fault}`),
    );
  beforeEach(() => void (faults.length = 0));

  it('is the place of its name', () => {
    const tiers = tiersBy(({ headers }) => headers['x-tier']);
    const places = ['S', 'A', 'B', 'C', 'exempt', undefined].map((name) =>
      tiers.tierOf(question('/', 'GET', { 'x-tier': name })),
    );
    expect(places).toEqual([0, 1, 2, 3, PASSES, 3]);
    expect([tiers.faults, faults]).toEqual([0, []]);
  });

  it('is the only one without a resolver', () => {
    expect(tiersBy().tierOf(question('/'))).toBe(0);
    expect(tiersBy().names(settings)).toEqual(['all']);
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('no');
      },
    ],
    ['promise', () => Promise.reject(new Error('later'))],
    ['type', () => ({ tier: 'S' })],
    ['type', () => null],
    ['name', () => 'gold'],
    ['name', () => '__proto__'],
  ])('is the lowest where the resolver is at fault: %s', (fault, resolver) => {
    const tiers = tiersBy(resolver);
    expect(tiers.tierOf(question('/'))).toBe(3);
    expect([tiers.faults, faults]).toEqual([1, [fault]]);
  });

  it('is what it is where isExempt gives a promise, and its rejection ends nothing', async () => {
    const rejections: unknown[] = [];
    const listen = (error: unknown): void => void rejections.push(error);
    process.on('unhandledRejection', listen);
    const tiers = tiersBy(
      () => 'A',
      () => Promise.reject(new Error('late')) as never,
    );
    expect(tiers.tierOf(question('/'))).toBe(1);
    await new Promise((resolve) => setImmediate(resolve));
    process.off('unhandledRejection', listen);
    expect([faults, rejections]).toEqual([['isExempt promise'], []]);
  });

  it('is the lowest of any number of names that are none, and nothing of them is kept', () => {
    let n = 0;
    const tiers = tiersBy(() => `tier ${n++}`);
    for (let i = 0; i < 100_000; i++) tiers.tierOf(question(`/path/${i}`));
    expect([tiers.faults, tiers.names(settings)]).toEqual([100_000, ['S', 'A', 'B', 'C']]);
    expect(new Set(faults)).toEqual(new Set(['name']));
  });

  it('is none for exempt paths of GET and HEAD alone', () => {
    const tiers = tiersBy(() => 'S');
    expect(tiers.tierOf(question('/health'))).toBe(PASSES);
    expect(tiers.tierOf(question('/healthz', 'HEAD'))).toBe(PASSES);
    expect(tiers.tierOf(question('/health', 'POST'))).toBe(0);
    expect(tiers.tierOf({ ...question('/health'), transport: 'rpc' })).toBe(0);
  });

  it('is none for all below an exempt path with a star, and for nothing beside it', () => {
    const tiers = new Tiers(
      checkOverload({ exempt: ['/health', '/ops/*'] }),
      () => 'S',
      undefined,
      () => {},
    );
    const passes = (path: string, method?: string) =>
      tiers.tierOf(question(path, method)) === PASSES;
    expect(['/ops/', '/ops/a', '/ops/a/b', '/health'].map((path) => passes(path))).toEqual(
      Array(4).fill(true),
    );
    expect(['/ops', '/opsa', '/op/a', '/x/ops/a', '/health/'].map((path) => passes(path))).toEqual(
      Array(5).fill(false),
    );
    expect(passes('/ops/a', 'POST')).toBe(false);
  });

  it('is none for pages of the library, by any method', () => {
    const tiers = tiersBy(() => 'S');
    tiers.addOwn('/api/ops');
    const passes = (path: string) => tiers.tierOf(question(path, 'PUT')) === PASSES;
    expect(['/api/ops', '/api/ops/', '/api/ops/api/config'].map(passes)).toEqual([
      ...[true, true, true],
    ]);
    expect(['/api/opsx', '/api', '/ops'].map(passes)).toEqual([false, false, false]);
  });

  it('is not left open by an isExempt that throws', () => {
    const tiers = tiersBy(undefined, () => {
      throw new Error('no');
    });
    expect([tiers.tierOf(question('/')), tiers.faults]).toEqual([0, 1]);
  });
});
