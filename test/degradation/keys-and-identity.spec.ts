import fc from 'fast-check';
import { cacheability, mayStore } from '../../lib/degradation/cacheability.js';
import { degradeKey, type DegradeKeyParts } from '../../lib/degradation/degrade-key.js';

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
    ['languages', { route, vary: { lang: 'de' } }, { route, vary: { lang: 'en' } }],
  ])('tells %s apart', (_name, one, other) => {
    expect(degradeKey(one)).not.toBe(degradeKey(other));
  });

  it('cannot be forged: of many made of separators, different parts never make the same key', () => {
    const text = fc.string({
      unit: fc.constantFrom(':', '1', '2', '{', '}', '-', 'a'),
      maxLength: 4,
    });
    const record = fc.dictionary(text, text, { maxKeys: 2 });
    const parts = fc.record(
      { route: text, params: record, query: record, principal: text, vary: record },
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
  const { route, params, query, vary, principal } = parts;
  return [route, entries(params), entries(query), entries(vary), principal ?? null];
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
    [{ status: 200, degraded: true }, false],
    [{ status: 200, cacheControl: 'public, max-age=60' }, true],
    [{ status: 200, cacheControl: 'no-store' }, false],
    [{ status: 200, cacheControl: 'max-age=60,Private' }, false],
    [{ status: 200, cacheControl: 'private="set-cookie"' }, false],
    [{ status: 200, cacheControl: ['max-age=1', 'NO-STORE'] }, false],
    [{ status: 200, cacheControl: 'x-private-beta' }, true],
  ])('%j: %s', (facts, expected) => {
    expect(mayStore(facts)).toBe(expected);
  });
});
