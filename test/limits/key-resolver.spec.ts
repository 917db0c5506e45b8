import { type ExecutionContext } from '@nestjs/common';
import fc from 'fast-check';
import {
  createRateLimiter,
  InvalidArgumentError,
  type Decision,
  type KeyOption,
} from 'nestjs-weir';
import { AwaitedValues } from '../../lib/limits/awaited-values.js';
import { compileKey, type KeySettings } from '../../lib/limits/key-resolver.js';
import { RoutePolicies } from '../../lib/limits/route-policies.js';
import { RequestBuilder } from '../../lib/limits/request-builder.js';
import { type RequestReader } from '../../lib/requests/transport.js';
import { type PolicyChoice } from '../../lib/limits/route-metadata.js';
import { RoutePlan } from '../../lib/limits/route-plan.js';
import { valueAt } from '../../lib/transports/shared/requests.js';

interface FakeRequest {
  readonly ip?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly user?: unknown;
  readonly body?: unknown;
}

const SETTINGS: KeySettings = { user: undefined, ipv6Prefix: 64 };
const ROUTE = 'Items.list';

/** Reads a request that is given as it is. */
function readerOf(request: FakeRequest): RequestReader {
  return {
    addressOf: () => request.ip,
    headerOf: (_context, name) => request.headers?.[name],
    userOf: () => request.user,
    valueAt: (_context, path) => valueAt(request, path),
    methodOf: () => 'GET',
    rawRequestOf: () => ({ transport: 'http', method: 'GET', path: '/', headers: {} }),
  };
}

/** Functions of the application get it; nothing here looks into it. */
const CONTEXT = { getType: () => 'http' } as unknown as ExecutionContext;

function keyOf(
  key: KeyOption,
  request: FakeRequest = {},
  { anonymous = 'ip', ...settings }: { anonymous?: KeyOption } & Partial<KeySettings> = {},
): string | undefined {
  const read = compileKey('policies.p.key', key, anonymous, { ...SETTINGS, ...settings });
  return read(CONTEXT, readerOf(request), ROUTE);
}

describe('the key of a request', () => {
  it('ip: the address, IPv6 by its network', () => {
    expect(keyOf('ip', { ip: '192.0.2.1' })).toBe('192.0.2.1');
    expect(keyOf('ip', { ip: '::ffff:192.0.2.1' })).toBe('192.0.2.1');
    expect(keyOf('ip', { ip: '2001:db8::1' })).toBe('2001:db8:0:0::/64');
    expect(keyOf('ip', { ip: '2001:db8::1' }, { ipv6Prefix: 32 })).toBe('2001:db8::/32');
    expect(keyOf('ip')).toBeUndefined();
  });

  it.each(['', '[]:80', '[]'])('ip: what only looks like an address is none: %p', (ip) => {
    expect(keyOf('ip', { ip })).toBeUndefined();
  });

  it.each([
    [{ id: 7 }, 'user:7'],
    [{ id: 12n }, 'user:12'],
    [{ sub: 'ann' }, 'user:ann'],
    [{ userId: 'ann' }, 'user:ann'],
    [{ username: 'ann' }, 'user:ann'],
    [{ id: '', sub: 'ann' }, 'user:ann'],
    ['ann', 'user:ann'],
    [7, 'user:7'],
  ])('user: %p is %s', (user, expected) => {
    expect(keyOf('user', { user })).toBe(expected);
  });

  it.each([undefined, null, '', {}, { id: { $ne: 1 } }, [], true])(
    'user: %p is nobody, and goes by the key of those',
    (user) => {
      const request = { user, ip: '192.0.2.1', headers: { 'x-key': 'k' } };
      expect(keyOf('user', request)).toBe('anonymous:192.0.2.1');
      expect(keyOf('user', request, { anonymous: { header: 'x-key' } })).toBe('anonymous:k');
      expect(keyOf('user', { user })).toBeUndefined();
    },
  );

  it('user: nobody can call himself what somebody else is', () => {
    const asName = keyOf('user', { user: 'anonymous:192.0.2.1' });
    expect(asName).not.toBe(keyOf('user', { ip: '192.0.2.1' }));
  });

  it('user: as the application says', () => {
    expect(keyOf('user', { user: 'ann' }, { user: () => ({ id: 'bob' }) })).toBe('user:bob');
    expect(keyOf('user', { user: 'ann', ip: '192.0.2.1' }, { user: () => undefined })).toBe(
      'anonymous:192.0.2.1',
    );
  });

  it('route, global, headers and values', () => {
    expect(keyOf('route')).toBe(ROUTE);
    expect(keyOf('global')).toBe('global');
    expect(keyOf({ header: 'X-Tenant' }, { headers: { 'x-tenant': 'a' } })).toBe('a');
    expect(keyOf({ header: 'X-Tenant' }, { headers: { 'x-tenant': '' } })).toBeUndefined();
    expect(keyOf({ param: 'body.items.1.sku' }, { body: { items: [{}, { sku: 9 }] } })).toBe('9');
    expect(keyOf({ param: 'body.items.7.sku' }, { body: { items: [] } })).toBeUndefined();
    expect(keyOf({ param: 'body.sku' })).toBeUndefined();
    expect(keyOf({ param: 'body.a' }, { body: { a: { b: 1 } } })).toBeUndefined();
  });

  it.each([
    'body.__proto__.polluted',
    'body.constructor.name',
    'body.toString',
    'body.a.length',
    'body.list.length.x',
  ])('finds nothing at %s that nobody has sent', (param) => {
    expect(keyOf({ param }, { body: { a: 'text', list: [] } })).toBeUndefined();
  });

  it('takes what was sent under the name of a prototype for what it is', () => {
    const body: unknown = JSON.parse('{"__proto__":{"x":"sent"}}');
    expect(keyOf({ param: 'body.__proto__.x' }, { body })).toBe('sent');
  });

  it('is what a function says', () => {
    expect(keyOf(() => 'k')).toBe('k');
    expect(keyOf(() => 0)).toBe('0');
    for (const nothing of [undefined, null, '']) expect(keyOf(() => nothing)).toBeUndefined();
    const promise = (() => Promise.resolve('k')) as unknown as KeyOption;
    expect(() => keyOf(promise)).toThrow('a promise is no key');
  });

  it('of several together is none if one of them has none', () => {
    expect(keyOf(['ip', { header: 'x' }], { ip: '192.0.2.1' })).toBeUndefined();
    expect(keyOf(['ip', 'route'], { ip: '192.0.2.1' })).toBe('9:192.0.2.1;10:Items.list;');
    expect(keyOf([['ip', 'route'], 'global'], { ip: '::1' })).toBeDefined();
  });

  it('of several together is equal only if all of them are', () => {
    // Few characters, those that the key itself is put together with among them.
    const part = fc.string({ unit: fc.constantFrom(...'1:;a'), minLength: 1, maxLength: 6 });
    const parts = fc.array(part, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(parts, parts, (one, other) => {
        const [a, b] = [one, other].map((texts) => keyOf(texts.map((text) => () => text)));
        expect(a === b).toBe(JSON.stringify(one) === JSON.stringify(other));
      }),
      { numRuns: 2_000 },
    );
  });

  it.each<[KeyOption, string]>([
    ['adress' as KeyOption, 'policies.p.key'],
    [null as unknown as KeyOption, 'policies.p.key'],
    [undefined as unknown as KeyOption, 'policies.p.key'],
    [[], 'policies.p.key'],
    [['ip', 'nothing'] as unknown as KeyOption, 'policies.p.key[1]'],
    [{ header: '' }, 'policies.p.key'],
    [{ param: -1 }, 'policies.p.key'],
    [{ param: 0.5 }, 'policies.p.key'],
    [{} as KeyOption, 'policies.p.key'],
  ])('cannot be %p', (key, field) => {
    expect(() => keyOf(key)).toThrow(InvalidArgumentError);
    expect(() => keyOf(key)).toThrow(field);
  });

  it('of nobody cannot be the key of somebody', () => {
    expect(() => keyOf('user', {}, { anonymous: 'user' })).toThrow('policies.p.key.anonymous');
  });
});

describe('a request without a key', () => {
  const warned: string[] = [];

  /** Asks a limiter for a route with one policy, as the guard does. */
  function stand(key: KeyOption, choices: readonly PolicyChoice[] = []) {
    const limiter = createRateLimiter();
    const catalog = new RoutePolicies(limiter, SETTINGS);
    catalog.define({ p: { rate: 1, period: '1h', key } });
    const plan = new RoutePlan(
      ROUTE,
      choices.length === 0 ? [catalog.get('p', 'the test')] : [],
      choices,
      false,
      undefined,
      false,
      limiter,
    );
    const faults = {
      missing: (policy: string, cause: unknown) => warned.push(`${policy}: ${String(cause)}`),
      beforeAuthentication: (policy: string) => warned.push(`${policy}: before authentication`),
      promised: (policy: string, what: string) => warned.push(`${policy}: ${what} promised`),
      failed: (policy: string | undefined, what: string) => warned.push(`${policy}: ${what}`),
      unknownTier: (policy: string, tier: string) => warned.push(`${policy}: tier ${tier}`),
    };
    const awaited = new AwaitedValues(() => undefined);
    const builder = new RequestBuilder(catalog, undefined, faults, awaited);
    return {
      limiter,
      ask(request: FakeRequest): boolean {
        const all = builder.all(plan, CONTEXT, readerOf(request), undefined);
        return (limiter.tryAcquire(all[0]!) as Decision).allowed;
      },
    };
  }

  beforeEach(() => (warned.length = 0));

  it('shares a bucket with all of its kind, and somebody is told', async () => {
    const { limiter, ask } = stand({ header: 'x-key' });
    expect([ask({}), ask({}), ask({ headers: { 'x-key': 'k' } })]).toEqual([true, false, true]);
    expect(warned).toEqual(['p: undefined', 'p: undefined']);
    await limiter.close();
  });

  it('does so as well if reading it failed', async () => {
    const { limiter, ask } = stand([
      'global',
      () => {
        throw new Error('broken');
      },
    ]);
    expect([ask({}), ask({})]).toEqual([true, false]);
    expect(warned).toEqual(['p: Error: broken', 'p: Error: broken']);
    await limiter.close();
  });

  it.each(['', {} as unknown as string])('does so where a choice says %p', async (key) => {
    const { limiter, ask } = stand('ip', [() => ({ policy: 'p', key })]);
    expect([ask({}), ask({})]).toEqual([true, false]);
    expect(warned).toEqual(['p: undefined', 'p: undefined']);
    await limiter.close();
  });

  it('is none whose choice says a number', async () => {
    let key = 1;
    const choice = () => ({ policy: 'p', key: key as unknown as string });
    const { limiter, ask } = stand('ip', [choice]);
    expect([ask({}), ask({})]).toEqual([true, false]);
    key = 2;
    expect([ask({}), warned]).toEqual([true, []]);
    await limiter.close();
  });

  it.each<[KeyOption, string[]]>([
    ['user', ['p: before authentication']],
    [['route', 'user'], ['p: before authentication']],
    [{ header: 'user' }, []],
    ['ip', []],
  ])('by %p is told from one that came before authentication', async (key, expected) => {
    const { limiter, ask } = stand(key);
    ask({ ip: '192.0.2.1', headers: { authorization: 'Bearer x', user: 'anonymous:1' } });
    expect(warned).toEqual(expected);
    await limiter.close();
  });
});

describe('a key of ten million characters', () => {
  it('is a key like others, to its last character', async () => {
    const limiter = createRateLimiter({ policies: { p: { rate: 1, period: '1h' } } });
    const allowed = (last: string): boolean => {
      const body = { huge: 'x'.repeat(10_000_000) + last };
      const key = keyOf([{ param: 'body.huge' }, 'route'], { body })!;
      return (limiter.tryAcquire({ policy: 'p', key }) as Decision).allowed;
    };
    expect([allowed('a'), allowed('b'), allowed('a')]).toEqual([true, true, false]);
    await limiter.close();
  });
});
