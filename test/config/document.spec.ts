import fc from 'fast-check';
import { deepFreeze } from '../../lib/common/immutable.js';
import { canonicalJson, hashOf } from '../../lib/config/document/json.js';
import { diff, isEmptyDiff, type ConfigDiff } from '../../lib/config/document/diff.js';
import { effective } from '../../lib/config/document/effective.js';
import { mergePatch, mergePatches } from '../../lib/config/document/merge-patch.js';
import { shared } from '../../lib/config/document/shared.js';

/** Two levels of objects by name and then values: what a document is like. */
const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.array(fc.integer()));
const name = fc.constantFrom('a', 'b', 'c', 'constructor-x');
const treeOf = (end: fc.Arbitrary<unknown>) =>
  fc.dictionary(name, fc.dictionary(name, end, { maxKeys: 3 }), { maxKeys: 3 });
const documents = treeOf(leaf);
/** Removes values only: see `mergePatches` for what removing an object means. */
const patches = treeOf(fc.oneof(leaf, fc.constant(null)));

describe('mergePatch', () => {
  // The examples of RFC 7396, appendix A.
  it.each([
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [
      ['a', 'b'],
      ['c', 'd'],
      ['c', 'd'],
    ],
    [{ a: 'b' }, ['c'], ['c']],
    [{ a: 'foo' }, null, null],
    [{ a: 'foo' }, 'bar', 'bar'],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])('%j with %j is %j', (target, patch, merged) => {
    expect(mergePatch(target, patch)).toEqual(merged);
  });

  it('applied twice is as applied once, and an empty patch changes nothing', () => {
    fc.assert(
      fc.property(documents, patches, (document, patch) => {
        const once = mergePatch(document, patch);
        expect(mergePatch(once, patch)).toEqual(once);
        expect(mergePatch(document, {})).toEqual(document);
      }),
    );
  });

  it('leaves what it is given alone', () => {
    fc.assert(
      fc.property(documents, patches, (document, patch) => {
        mergePatch(deepFreeze(document), deepFreeze(patch));
        mergePatches(document, patch);
      }),
    );
  });
});

describe('mergePatches', () => {
  it('does what the one and then the other would do', () => {
    fc.assert(
      fc.property(documents, patches, patches, (document, first, second) => {
        const both = mergePatches(first, second);
        expect(mergePatch(document, both)).toEqual(mergePatch(mergePatch(document, first), second));
      }),
      { numRuns: 500 },
    );
  });

  it('does not matter how three are grouped', () => {
    fc.assert(
      fc.property(patches, patches, patches, (a, b, c) => {
        expect(mergePatches(mergePatches(a, b), c)).toEqual(mergePatches(a, mergePatches(b, c)));
      }),
    );
  });

  it('keeps what is to be removed', () => {
    expect(mergePatches({ a: { b: 1 } }, { a: { b: null } })).toEqual({ a: { b: null } });
    expect(mergePatches({ a: null }, { b: 1 })).toEqual({ a: null, b: 1 });
    expect(mergePatches({ a: { b: 1 } }, { a: null })).toEqual({ a: null });
  });

  it('sets fields of an object that was to be removed on what is below', () => {
    expect(mergePatches({ a: null }, { a: { b: 1 } })).toEqual({ a: { b: 1 } });
  });
});

describe('names that reach a prototype', () => {
  const hostile = () =>
    JSON.parse(
      '{"__proto__":{"bad":1},"constructor":{"prototype":{"bad":1}},"a":{"__proto__":{"bad":1}}}',
    ) as object;

  it('are no fields for a merge, and harm nobody', () => {
    for (const merged of [
      mergePatch({}, hostile()),
      mergePatch(hostile(), { b: 1 }),
      mergePatches({ a: {} }, hostile()),
      mergePatches(hostile(), { a: {} }),
    ]) {
      expect((merged as { bad?: number }).bad).toBeUndefined();
      expect((merged as { a: { bad?: number } }).a.bad).toBeUndefined();
    }
    expect(({} as { bad?: number }).bad).toBeUndefined();
    expect(diff({}, { toString: 1 }).added).toEqual([{ path: 'toString', after: 1 }]);
  });
});

describe('effective', () => {
  const document = {
    policies: { api: { rate: 5, burst: 9 } },
    profile: 'promo',
    profiles: { promo: { policies: { api: { rate: 50 } } } },
  };

  it('lays the profile in force on top', () => {
    expect(effective(document).policies).toEqual({ api: { rate: 50, burst: 9 } });
    expect(effective(document, 'normal').policies).toEqual(document.policies);
    expect(effective({ ...document, profile: undefined }).policies).toEqual(document.policies);
  });

  it('changes nothing when done again', () => {
    expect(effective(effective(document))).toEqual(effective(document));
  });

  it('takes no profile from what every object inherits', () => {
    expect(effective({ ...document, profile: 'toString' }).policies).toEqual(document.policies);
  });
});

describe('diff', () => {
  it('tells what came, what went and what changed', () => {
    const before = { a: { x: 1, y: [1, 2] }, b: { z: 1 } };
    const after = { a: { x: 2, y: [1, 2] }, 'c.d': { e: 5 } };
    expect(diff(before, after)).toEqual({
      added: [{ path: '["c.d"]', after: { e: 5 } }],
      removed: [{ path: 'b', before: { z: 1 } }],
      changed: [{ path: 'a.x', before: 1, after: 2 }],
    });
  });

  it('is empty for equal documents, and only for them', () => {
    fc.assert(
      fc.property(documents, documents, (a, b) => {
        expect(isEmptyDiff(diff(a, structuredClone(a)))).toBe(true);
        expect(isEmptyDiff(diff(a, b))).toBe(canonicalJson(a) === canonicalJson(b));
      }),
    );
  });

  it('holds all that there is to know', () => {
    fc.assert(
      fc.property(documents, documents, (a, b) => {
        expect(applied(a, diff(a, b))).toEqual(b);
      }),
    );
  });

  it('the other way round is the other way round', () => {
    fc.assert(
      fc.property(documents, documents, (a, b) => {
        const [there, back] = [diff(a, b), diff(b, a)];
        expect(back.removed.map(({ path }) => path)).toEqual(there.added.map(({ path }) => path));
        expect(back.changed.map(({ path }) => path)).toEqual(there.changed.map(({ path }) => path));
      }),
    );
  });

  /** The document after all entries have been applied one by one. */
  function applied(document: unknown, { added, removed, changed }: ConfigDiff): unknown {
    const result = structuredClone(document) as Record<string, unknown>;
    const at = (path: string): [Record<string, unknown>, string] => {
      const names = path.split('.');
      const last = names.pop()!;
      return [names.reduce((one, next) => one[next] as Record<string, unknown>, result), last];
    };
    for (const { path } of removed) {
      const [parent, last] = at(path);
      delete parent[last];
    }
    for (const { path, after } of [...added, ...changed]) {
      const [parent, last] = at(path);
      parent[last] = after;
    }
    return result;
  }
});

describe('the hash', () => {
  it('is the same whatever the order of the fields', () => {
    fc.assert(
      fc.property(documents, (document) => {
        const turned = Object.fromEntries(Object.entries(document).reverse());
        expect(hashOf(turned)).toBe(hashOf(document));
        expect(JSON.parse(canonicalJson(document))).toEqual(document);
      }),
    );
  });

  it('is the sha256 of the text', () => {
    expect(canonicalJson({ b: [{ d: 1, c: null }], a: 'x' })).toBe(
      '{"a":"x","b":[{"c":null,"d":1}]}',
    );
    expect(hashOf({})).toBe('44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a');
  });
});

describe('shared', () => {
  it('says the same as what was given', () => {
    fc.assert(
      fc.property(documents, documents, (known, value) => {
        expect(shared(deepFreeze(known), value)).toEqual(value);
      }),
    );
  });

  it('is what was known, and no copy of it, wherever that says the same', () => {
    fc.assert(
      fc.property(documents, patches, (document, patch) => {
        const known = deepFreeze(document) as Record<string, unknown>;
        const next = JSON.parse(JSON.stringify(mergePatch(known, patch))) as typeof known;
        const made = shared(known, next);
        for (const [name, part] of Object.entries(made)) {
          const isKnown = canonicalJson(part) === canonicalJson(known[name]);
          expect(part === known[name]).toBe(isKnown);
        }
        expect(shared(known, JSON.parse(JSON.stringify(known)))).toBe(known);
      }),
    );
  });
});
