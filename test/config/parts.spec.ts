import fc from 'fast-check';
import { AppliedConfig } from '../../lib/config/applied-config.js';
import { mergePatch, patchBetween } from '../../lib/config/document/merge-patch.js';
import { joined, NO_LAYERS, patched } from '../../lib/config/layers.js';
import { StoreTime } from '../../lib/config/store-time.js';
import { type ConfigRecord } from '../../lib/stores/config-store.js';
import { ManualClock } from '../support/manual-clock.js';
import { limitOf } from './fleet.js';

function record(revision: number, more: Partial<ConfigRecord> = {}): ConfigRecord {
  return {
    ...{
      ...NO_LAYERS,
      code: { default: { document: limitOf(revision), version: null } },
      id: `r${revision}`,
      kind: 'update',
      by: 'ann',
    },
    ...{ revision, atMs: 0, effectiveAtMs: 0, hash: '', staged: [] },
    ...more,
  };
}

describe('the configuration in use', () => {
  const errors: string[] = [];
  const quiet = { info: () => {}, warn: () => {}, error: (text: string) => errors.push(text) };
  let applied: AppliedConfig;
  let used: number[];

  beforeEach(() => {
    errors.length = 0;
    used = [];
    applied = new AppliedConfig(quiet);
    applied.consume({
      prepare:
        ({ revision }) =>
        () =>
          used.push(revision),
    });
  });

  it('never goes back', () => {
    for (const revision of [3, 2, 3, 5, 4, 1]) applied.adopt(record(revision));
    expect(used).toEqual([3, 5]);
  });

  it('changes over as a whole even if a part breaks its word and fails', () => {
    applied.consume({
      prepare: () => () => {
        throw new Error('oh no');
      },
    });
    applied.consume({
      prepare:
        ({ revision }) =>
        () =>
          used.push(-revision),
    });
    applied.adopt(record(1));
    expect(used).toEqual([1, -1]);
    expect(applied.snapshot!.revision).toBe(1);
    expect(errors).toEqual([expect.stringContaining('oh no')]);
  });

  it('says at once of what is staged that it could not be used', () => {
    applied.adopt(record(1));
    const about = { id: 2, by: 'ann', effectiveAtMs: 10 };
    const update = { ...about, allowEmpty: false, patch: { policies: { api: { rate: '0/s' } } } };
    applied.adopt(record(2, { kind: 'stage', staged: [update], about }));
    expect(applied.nodeReport('a')).toMatchObject({ revision: 2, status: 'refused', about: 2 });
    expect(used).toEqual([1, 2]);
  });
});

describe('patchBetween', () => {
  const withoutNulls = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.integer(),
      fc.string(),
      fc.array(fc.integer(), { maxLength: 3 }),
      tie('object'),
    ),
    object: fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), tie('value'), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
  })).object;

  it('makes the second of the first', () => {
    fc.assert(
      fc.property(withoutNulls, withoutNulls, (before, after) => {
        expect(mergePatch(before, patchBetween(before, after))).toEqual(after);
      }),
    );
  });

  it('says nothing where nothing has changed', () => {
    expect(patchBetween({ a: 1, b: { c: [1], d: 2 } }, { b: { d: 2, c: [1] }, a: 1 })).toEqual({});
    expect(patchBetween({ a: 1, b: { c: 1, d: 2 } }, { b: { c: 1 } })).toEqual({
      a: null,
      b: { d: null },
    });
  });
});

describe('one patch more', () => {
  const names = fc.constantFrom('a', 'b', 'toString');
  const leaf = fc.constantFrom<unknown>(1, 2, 'x', [1]);
  const { part } = fc.letrec<{ part: unknown }>((tie) => ({
    part: fc.oneof({ maxDepth: 3 }, leaf, fc.constant(null), fc.dictionary(names, tie('part'))),
  }));
  const patch = fc.dictionary(names, part);

  it('does to the document what it says, whatever those before it have said', () => {
    const code = { shop: { document: { a: { a: 1, b: { a: 2 } }, b: 3 }, version: null } };
    fc.assert(
      fc.property(fc.array(patch, { minLength: 1, maxLength: 5 }), (patches) => {
        let layers = { ...NO_LAYERS, code };
        for (const one of patches) {
          const wanted = mergePatch(joined(layers), one);
          layers = { ...patched(layers, one), code };
          expect(joined(layers)).toEqual(wanted);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('the time of the store', () => {
  const clock = new ManualClock(0);
  const ask = (time: StoreTime, roundTripMs: number, storeMs: number): void => {
    const sent = clock.now();
    clock.advance(roundTripMs);
    time.observe(sent, storeMs);
  };

  it('was read halfway between question and answer', () => {
    const time = new StoreTime(clock);
    ask(time, 10, 5000);
    expect(time.nowMs()).toBe(5005);
    clock.advance(100);
    expect(time.nowMs()).toBe(5105);
  });

  it('is known best by the quickest answer, for a while', () => {
    const time = new StoreTime(clock);
    ask(time, 2, 1000);
    // Read early, and the answer took long: half of that is not to be believed.
    ask(time, 100, 1002);
    expect(time.nowMs()).toBe(1101);
    clock.advance(61_000);
    ask(time, 100, 1_000_000);
    expect(time.nowMs()).toBe(1_000_050);
  });

  it('is measured anew when the clock was set', () => {
    const time = new StoreTime(clock);
    ask(time, 2, 1000);
    ask(time, 10, 900_000);
    expect(time.nowMs()).toBe(900_005);
  });
});
