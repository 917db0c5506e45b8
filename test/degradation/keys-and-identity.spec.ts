import fc from 'fast-check';
import { cacheability, foreignVary, mayStore } from '../../lib/degradation/core/cacheability.js';
import { degradeKey, type DegradeKeyParts } from '../../lib/degradation/core/degrade-key.js';
import { isPlainData } from '../../lib/degradation/core/plain-data.js';
import { seal, unseal } from '../../lib/stores/envelope.js';

describe('the key of an answer', () => {
  const route = 'GET /products/:id';

  it('is the same whatever the order of names', () => {
    const one = { route, params: { a: '1', b: '2' }, query: { x: '1', y: ['1', '2'] } };
    const other = { route, params: { b: '2', a: '1' }, query: { y: ['1', '2'], x: '1' } };
    expect(degradeKey(one)).toBe(degradeKey(other));
  });

  it('is the same for no query and an empty one', () => {
    expect(degradeKey({ route, query: {} })).toBe(degradeKey({ route }));
  });

  it.each<[string, DegradeKeyParts, DegradeKeyParts]>([
    ['routes', { route }, { route: 'GET /products/:sku' }],
    ['params', { route, params: { id: '1' } }, { route, params: { id: '2' } }],
    ['queries', { route, query: { a: '1' } }, { route, query: { a: '2' } }],
    ['a param and a query', { route, params: { a: '1' } }, { route, query: { a: '1' } }],
    ['orders of values', { route, query: { a: ['1', '2'] } }, { route, query: { a: ['2', '1'] } }],
    ['a list and a text', { route, query: { a: ['1'] } }, { route, query: { a: '1' } }],
    ['a number and a text', { route, query: { a: 1 } }, { route, query: { a: '1' } }],
    ['nothing and a text', { route, query: { a: undefined } }, { route, query: { a: 'none' } }],
    ['nested values', { route, query: { a: { b: '1' } } }, { route, query: { a: { c: '1' } } }],
    ['schema versions', { route, schemaVersion: 1 }, { route, schemaVersion: 2 }],
    ['versions 1 and "1"', { route, schemaVersion: 1 }, { route, schemaVersion: '1' }],
    ['principals', { route, principal: 'ann' }, { route, principal: 'bob' }],
    ['a principal and none', { route, principal: '' }, { route }],
    ['a principal and a dash', { route, principal: '-' }, { route }],
    ['a name and a value', { route, query: { a: 'b:' } }, { route, query: { 'a:b': '' } }],
    ['a value and two', { route, query: { a: '1' } }, { route, query: { a: '', '1': '' } }],
    ['services', { route, service: 'a' }, { route, service: 'b' }],
    ['a service and none', { route, service: '-' }, { route }],
    ['bodies', { route, body: { a: 1 } }, { route, body: { a: 2 } }],
    ['a body and a query', { route, body: { a: '1' } }, { route, query: { a: '1' } }],
    ['an empty body and none', { route, body: {} }, { route }],
    ['numbers that JSON does not', { route, body: NaN }, { route, body: Infinity }],
    ['0 and -0', { route, body: 0 }, { route, body: -0 }],
    ['bytes', { route, body: Buffer.from([1]) }, { route, body: Buffer.from([2]) }],
    ['moments', { route, body: new Date(1) }, { route, body: new Date(2) }],
    ['what is far below', { route, query: nested(9, '1') }, { route, query: nested(9, '2') }],
    ['what is very far', { route, body: nested(9999, '1') }, { route, body: nested(9999, '2') }],
    ['languages', { route, vary: { lang: 'de' } }, { route, vary: { lang: 'en' } }],
  ])('tells %s apart', (_name, one, other) => {
    expect(degradeKey(one)).not.toBe(degradeKey(other));
  });

  it('is none for what it cannot tell apart, and ends with what does not', () => {
    class Money {}
    for (const body of [
      new Map([[1, 2]]),
      new Money(),
      [new Money()],
      Object.create(new Money()),
    ]) {
      expect(() => degradeKey({ route, body })).toThrow(TypeError);
    }
    const itself: unknown[] = [];
    itself.push(itself);
    expect(() => degradeKey({ route, body: itself })).toThrow(RangeError);
  });

  it('cannot be forged: of many made of separators, different parts never make the same key', () => {
    const text = fc.string({
      unit: fc.constantFrom(':', '1', '2', '{', '}', '-', 'a'),
      maxLength: 4,
    });
    const record = fc.dictionary(text, text, { maxKeys: 2 });
    const parts = fc.record(
      { route: text, params: record, query: record, principal: text, vary: record, body: record },
      { requiredKeys: ['route', 'params', 'query', 'vary'] },
    );
    const seen = new Map<string, string>();
    for (const one of fc.sample(parts, 20_000)) {
      const key = degradeKey(one);
      const meaning = JSON.stringify(sorted(one));
      expect(seen.get(key) ?? meaning).toBe(meaning);
      seen.set(key, meaning);
    }
  });

  it('is bounded in length, whatever the request brings', () => {
    const long = degradeKey({ route, query: { q: 'x'.repeat(100_000) } });
    expect(long.length).toBeLessThan(64);
    expect(long).not.toBe(degradeKey({ route, query: { q: 'x'.repeat(100_001) } }));
    let deep: Record<string, unknown> = {};
    for (let i = 0; i < 10_000; i++) deep = { a: deep };
    expect(degradeKey({ route, query: deep }).length).toBeLessThanOrEqual(128);
  });
});

function sorted(parts: DegradeKeyParts): unknown {
  const entries = (record: object = {}): [string, unknown][] =>
    Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1));
  const { route, params, query, vary, principal, body } = parts;
  const isNone = body === undefined ? null : entries(body as object);
  return [route, entries(params), entries(query), entries(vary), principal ?? null, isNone];
}

function nested(levels: number, leaf: string): Record<string, unknown> {
  let value: Record<string, unknown> = { leaf };
  for (let i = 0; i < levels; i++) value = { value };
  return value;
}

describe('whose answers may be cached', () => {
  it.each([
    { hasCredentials: false, principal: undefined, shared: false, expected: 'shared' },
    { hasCredentials: true, principal: 'ann', shared: false, expected: 'own' },
    { hasCredentials: false, principal: 'ann', shared: false, expected: 'own' },
    { hasCredentials: true, principal: undefined, shared: false, expected: 'none' },
    { hasCredentials: true, principal: '', shared: false, expected: 'none' },
    { hasCredentials: true, principal: undefined, shared: true, expected: 'shared' },
    { hasCredentials: true, principal: 'ann', shared: true, expected: 'shared' },
  ])('credentials $hasCredentials, principal $principal, shared $shared: $expected', (facts) => {
    expect(cacheability(facts)).toBe(facts.expected);
  });
});

describe('what may be stored', () => {
  it.each([
    [{ status: 200 }, true],
    [{}, true],
    [{ status: 201 }, false],
    [{ status: 204 }, false],
    [{ status: 304 }, false],
    [{ status: 404 }, false],
    [{ status: 500 }, false],
    [{ status: 200, setCookie: true }, false],
    [{ status: 200, cacheControl: 'public, max-age=60' }, true],
    [{ status: 200, cacheControl: 'no-store' }, false],
    [{ status: 200, cacheControl: 'max-age=60,Private' }, false],
    [{ status: 200, cacheControl: 'private="set-cookie"' }, false],
    [{ status: 200, cacheControl: 'max-age=1, NO-STORE' }, false],
    [{ status: 200, cacheControl: 'x-private-beta' }, true],
  ])('%j: %s', (facts, expected) => {
    expect(mayStore(facts)).toBe(expected);
  });
});

describe('what an answer depends on by its own word', () => {
  it.each([
    [undefined, undefined],
    ['', undefined],
    ['Accept-Encoding', undefined],
    ['origin , ACCEPT-ENCODING', undefined],
    ['X-Lang', undefined],
    ['Origin, X-Other', 'X-Other'],
    ['Origin,Cookie', 'Cookie'],
    ['*', '*'],
    ['Accept-Encoding,*', '*'],
  ])('%j, with x-lang in the key: %s', (vary, expected) => {
    expect(foreignVary({ vary }, ['x-lang'])).toBe(expected);
  });
});

describe('plain data', () => {
  class Money {
    toJSON(): string {
      return '1';
    }
  }
  class Day extends Date {}
  class Row extends Array<number> {}
  it.each<[string, unknown]>([
    ...[1, 'a', true, null, undefined].map((one): [string, unknown] => [String(one), one]),
    ['a list', [1, [2]]],
    ['an object', { a: { b: 1 } }],
    ['one without a prototype', Object.assign(Object.create(null) as object, { a: 1 })],
    ['a date', { at: new Date(0) }],
    ['an address', [new URL('http://weir.test')]],
  ])('is %s', (_what, value) => expect(isPlainData(value)).toBe(true));

  it.each<[string, unknown]>([
    ['an instance', new Money()],
    ['one in a list', [[new Money()]]],
    ['a date of a class of its own', new Day()],
    ['a date that writes itself otherwise', Object.assign(new Date(), { toJSON: () => 'x' })],
    ['a list of a class of its own', Row.from([1])],
    ['an object that writes itself', { toJSON: () => ({}) }],
    ['an object with a mark', { [Symbol('mark')]: 1 }],
    ['a child of an object', Object.create({ a: 1 })],
    ['bytes', Buffer.from('a')],
    ['a map', new Map()],
    ['a text in a box', Object('a')],
  ])('is not %s', (_what, value) => expect(isPlainData(value)).toBe(false));
});

describe('an envelope', () => {
  const sealed = (body: unknown) => seal({ v: 1, t: 1, kind: 'json', body })?.text;
  const lists = (depth: number): unknown => {
    let value: unknown = '[{"\\"[[[[';
    for (let i = 0; i < depth; i++) value = [value];
    return value;
  };

  it('holds what is 100 levels deep, and no more', () => {
    expect(unseal(sealed(lists(100))!)?.body).toEqual(lists(100));
    expect(sealed(lists(101))).toBeUndefined();
    const deep = JSON.stringify({ v: 1, t: 1, kind: 'json', body: lists(101) });
    expect(unseal(deep)).toBeUndefined();
  });
});
