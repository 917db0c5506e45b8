import fc from 'fast-check';
import { checkDocument } from '../../lib/config/schema/check.js';
import { ConfigSyntaxError, parseText, jsonFault } from '../../lib/config/sources/parse-text.js';

async function faultOf(text: string, name: string): Promise<string> {
  try {
    await parseText(text, name);
  } catch (error) {
    if (error instanceof ConfigSyntaxError) return error.message;
    throw error;
  }
  return 'none';
}

describe('jsonFault', () => {
  it('finds a fault where JSON.parse does, and no other', () => {
    const cut = fc
      .tuple(fc.json(), fc.nat(), fc.constantFrom('', '}', ',', '"', '\\', '1', 'x', ' '))
      .map(([text, at, put]) => {
        const i = at % (text.length + 1);
        return text.slice(0, i) + put + text.slice(i + 1);
      });
    fc.assert(
      fc.property(fc.oneof(fc.json(), cut), (text) => {
        let isJson = true;
        try {
          JSON.parse(text);
        } catch {
          isJson = false;
        }
        expect(jsonFault(text) === undefined).toBe(isJson);
      }),
      { numRuns: 3000 },
    );
  });
});

describe('a text', () => {
  it('is JSON or YAML by its name', async () => {
    const value = { policies: { api: { rate: '100/min', tiers: { vip: 500 } } } };
    const yaml = 'policies:\n  api:\n    rate: 100/min # a minute\n    tiers: { vip: 500 }\n';
    expect(await parseText(JSON.stringify(value), 'weir.json')).toEqual(value);
    expect(await parseText(JSON.stringify(value), 'weir.yaml')).toEqual(value);
    expect(await parseText(yaml, 'weir.yml')).toEqual(value);
    expect(await parseText(`\uFEFF${JSON.stringify(value)}`, 'weir.JSON')).toEqual(value);
    expect(await faultOf(yaml, 'weir.json')).toMatch(/^weir.json:1:1: not JSON: /);
  });

  it('may say where its schema is', async () => {
    expect(await parseText('{ "$schema": "./weir.schema.json", "version": 1 }', 'a.json')).toEqual({
      version: 1,
    });
  });

  it('may use anchors, and lay one map over another', async () => {
    const text = 'policies:\n  a: &a { rate: 5 }\n  b: *a\n  c:\n    <<: *a\n    burst: 2\n';
    expect(await parseText(text, 'a.yaml')).toEqual({
      policies: { a: { rate: 5 }, b: { rate: 5 }, c: { rate: 5, burst: 2 } },
    });
  });

  it.each([
    ['a.json', '', 'a.json: is empty'],
    ['a.yaml', ' \n\n', 'a.yaml: is empty'],
    ['a.json', '{\n  "a": 1,\n  "b": }\n', "a.json:3:8: not JSON: expected a value, got '}'"],
    [
      'a.json',
      '{\n  "a": {\n',
      'a.json:3:1: not JSON: expected a name in double quotes, got the end',
    ],
    ['a.json', 'abc', "a.json:1:1: not JSON: expected a value, got 'abc'"],
    ['a.json', '{ "a": [1, 2 3] }', "a.json:1:14: not JSON: expected ',' or ']', got '3]'"],
    ['a.json', '{ "a": 1 } x', "a.json:1:12: not JSON: expected the end, got 'x'"],
    ['a.json', '{ a: 1 }', "a.json:1:3: not JSON: expected a name in double quotes, got 'a:'"],
    ['a.json', '{ "a" 1 }', "a.json:1:7: not JSON: expected ':', got '1'"],
    ['a.json', '{ "a": 01 }', "a.json:1:8: not JSON: expected a value, got '01'"],
    ['a.yaml', 'a:\n  b: 1\n c: 2\n', /^a.yaml:3:2: not YAML: /],
    ['a.yaml', 'a: 1\na: 2\n', 'a.yaml:2:1: not YAML: duplicated mapping key'],
    ['a.yaml', 'a: {\n', /^a.yaml:\d:\d: not YAML: /],
    ['a.yaml', 'a: !!js/function "x"\n', /^a.yaml:1:4: not YAML: unknown scalar tag/],
    ['a.yaml', 'a: *nobody\n', /not YAML: .*nobody/],
    ['a.yaml', 'a: 1\n---\nb: 2\n', /^a.yaml: not YAML: .*single document/],
    [
      'a.yaml',
      `a: ${'x'.repeat(1_048_576)}`,
      'a.yaml: has 1048579 bytes; no more than 1048576 are read',
    ],
  ])('%s %j is refused', async (name, text, fault) => {
    if (typeof fault === 'string') expect(await faultOf(text, name)).toBe(fault);
    else expect(await faultOf(text, name)).toMatch(fault);
  });

  it('that multiplies itself is refused', async () => {
    const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let i = 1; i < 9; i++)
      lines.push(
        `a${i}: &a${i} [${Array(10)
          .fill(`*a${i - 1}`)
          .join(', ')}]`,
      );
    // A few aliases can still make much: that is counted where the document is copied.
    const text = lines.join('\n');
    const value = await parseText(text, 'a.yaml');
    expect(() => checkDocument(value)).toThrow(/is too large/);
    const more = Array.from({ length: 101 }, (_, i) => `b${i}: *a0`).join('\n');
    expect(await faultOf(`${lines[0]}\n${more}`, 'a.yaml')).toMatch(/not YAML: .*alias/i);
  });

  it('that leads back to itself is refused', async () => {
    const value = await parseText('policies: &all\n  api: { tiers: *all }\n', 'a.yaml');
    expect(() => checkDocument(value)).toThrow(/levels/);
  });

  it('has no more keys than a configuration can need', async () => {
    const map = (keys: number) => Array.from({ length: keys }, (_, i) => `k${i}: 1`).join('\n');
    expect(await faultOf(map(90_000), 'a.yaml')).toBe(
      'a.yaml: not YAML: it has more than 20000 keys',
    );
    const value = Object.fromEntries(Array.from({ length: 20_001 }, (_, i) => [`k${i}`, 1]));
    expect(() => checkDocument(value)).toThrow('no more than 20000 keys');
  });

  it('that is wrong in very many places says so once', async () => {
    const fault = await faultOf(`a: "${'\\q'.repeat(250_000)}"`, 'a.yaml');
    expect(fault).toMatch(/^a.yaml:1:\d: not YAML: /);
    expect(fault.length).toBeLessThan(200);
  });

  it.each(['[', '{a: ', '- ', '? ', '- - ? '])(
    'that nests %j without end is refused',
    async (opening) => {
      for (const name of ['a.yaml', 'a.json']) {
        expect(await faultOf(opening.repeat(100_000), name)).toBe(
          `${name}: is nested more than 200 deep`,
        );
      }
    },
  );

  it('that is indented without end is refused', async () => {
    const lines = Array.from({ length: 1200 }, (_, i) => `${' '.repeat(i)}a:`);
    expect(await faultOf(lines.join('\n'), 'a.yaml')).toMatch(
      /^a.yaml:\d+:\d+: not YAML: .*maxDepth/,
    );
  });

  it('cannot reach a prototype', async () => {
    for (const name of ['a.json', 'a.yaml']) {
      const value = await parseText('{"policies":{"__proto__":{"rate":5}}}', name);
      expect(() => checkDocument(value)).toThrow('policies.__proto__: no field may be called so');
    }
    expect(({} as { rate?: number }).rate).toBeUndefined();
  });
});
