import fc from 'fast-check';
import { LogLinear } from '../../lib/common/histogram.js';
import {
  decodeSnapshot,
  encodeSnapshot,
  type NodeSnapshot,
} from '../../lib/observability/fleet/snapshot.js';
import { type ShownKey } from '../../lib/observability/state.js';
import { series, snapshot } from './snapshots.js';

const LONG = `"${'x'.repeat(200)}"`;

describe('a snapshot', () => {
  it('is read as it was written', () => {
    const row = fc.record({
      kind: fc.constantFrom('app', 'policy', 'resource') as fc.Arbitrary<'app'>,
      name: fc.string({ maxLength: 40 }),
      count: fc.nat(),
      micros: fc.array(fc.nat(70_000_000), { maxLength: 20 }),
    });
    fc.assert(
      fc.property(fc.uniqueArray(row, { maxLength: 8, selector: (one) => one.name }), (rows) => {
        const all = rows.map(({ kind, name, count, micros }) => {
          const times = new LogLinear();
          for (const one of micros) times.record(one);
          return series(kind, name, count, micros.length > 0 ? { times } : {});
        });
        const read = decodeSnapshot('n', encodeSnapshot(snapshot('n', all))) as NodeSnapshot;
        const sorted = all.toSorted((a, b) => b.counts.count - a.counts.count);
        expect(read.series.map(({ name, counts }) => [name, counts])).toEqual(
          sorted.map(({ name, counts }) => [name, counts]),
        );
        for (const [index, { times }] of read.series.entries()) {
          expect(times?.cells).toEqual(sorted[index]!.times?.cells);
        }
      }),
    );
  });

  it('has 8 kB at most, whatever a node watches, and loses no count', () => {
    const times = new LogLinear();
    for (let micros = 1; micros < 60_000_000; micros *= 1.1) times.record(micros);
    const all = [series('total', '', 9_000_000, { times })];
    for (let index = 0; index < 100; index++) all.push(series('policy', `policy-${index}`, 1000));
    for (let index = 0; index < 38; index++) {
      all.push(series('resource', `resource-${index}`, 100, { times }));
    }
    const text = encodeSnapshot(snapshot('n', all));
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(8192);
    const read = decodeSnapshot('n', text) as NodeSnapshot;
    const sum = (kind: string) =>
      read.series.filter((one) => one.kind === kind).reduce((s, { counts }) => s + counts.count, 0);
    expect([sum('total'), sum('policy'), sum('resource')]).toEqual([9_000_000, 100_000, 3800]);
  });

  it('has states of resources and apps, those in trouble first if there is no room for all', () => {
    const resources = Array.from({ length: 200 }, (_, index) => ({
      ...{ resource: `resource-${index}`, percent: undefined, falls: index },
      breaker: index === 150 ? ('open' as const) : ('closed' as const),
      phase: index === 170 ? ('degraded' as const) : undefined,
    }));
    const modes = Array.from({ length: 200 }, (_, index) => {
      return [`app-${index}`, index === 190 ? 'offline' : 'batch'] as const;
    });
    const line = { standing: true, waiting: 7 };
    const given = snapshot('n', [], { resources, modes, line, overloaded: true });
    const read = decodeSnapshot('n', encodeSnapshot(given)) as NodeSnapshot;
    expect(read).toMatchObject({ line, overloaded: true, revision: 4, storeIsUp: true });
    expect(read.resources.slice(0, 2)).toEqual([resources[150], resources[170]]);
    expect(read.modes[0]).toEqual(['app-190', 'offline']);
  });

  it('says who denied apps, those denied most if there is no room for all; earlier versions do not', () => {
    const denials = Array.from({ length: 300 }, (_, index) => {
      return { app: `app-${index}`, denied: index + 1, byCluster: index };
    });
    const text = encodeSnapshot(snapshot('n', [], { denials }));
    const read = decodeSnapshot('n', text) as NodeSnapshot;
    expect(read.denials[0]).toEqual({ app: 'app-299', denied: 300, byCluster: 299 });
    const { den: _, ...earlier } = JSON.parse(text) as Record<string, unknown>;
    expect(decodeSnapshot('n', JSON.stringify(earlier))).toMatchObject({ denials: [] });
    const damaged = JSON.stringify({ ...earlier, den: [['a', -1, 0]] });
    expect(decodeSnapshot('n', damaged)).toBe('damaged');
  });

  it('cuts names that are too long, so that the rest of it can be read', () => {
    const key = { policy: 'p', key: 'k'.repeat(500), denied: 1 };
    const long = snapshot('n', [series('policy', 'x'.repeat(200), 1)], { deniedKeys: [key] });
    const read = decodeSnapshot('n', encodeSnapshot(long)) as NodeSnapshot;
    expect(read.series[0]!.name).toBe('x'.repeat(128));
    expect(read.deniedKeys[0]!.key).toBe('k'.repeat(128));
  });

  it('says where keys were denied, to versions that ask; others do not say, and are read all the same', () => {
    const denied = (source: ShownKey['source']): ShownKey => ({ policy: 'p', key: 'k', denied: 3, source }); // oxfmt-ignore
    const text = (source: ShownKey['source']): string =>
      encodeSnapshot(snapshot('n', [], { deniedKeys: [denied(source)] }));
    const readBack = (written: string) => (decodeSnapshot('n', written) as NodeSnapshot).deniedKeys;
    for (const source of ['local', 'store', 'fallback', undefined] as const) {
      expect(readBack(text(source))).toEqual([denied(source)]);
    }
    const closed: ShownKey = { ...denied('fallback'), failureMode: 'closed' };
    const written = encodeSnapshot(snapshot('n', [], { deniedKeys: [closed] }));
    expect(readBack(written)).toEqual([closed]);
    // Earlier versions read the first three, and write no more.
    expect(text('fallback')).toContain('"keys":[["p","k",3,2]]');
    expect(text(undefined)).toContain('"keys":[["p","k",3]]');
    for (const other of ['9', '"x"', 'null', '-1']) {
      expect(readBack(text('fallback').replace('3,2]]', `3,${other}]]`))).toEqual([
        denied(undefined),
      ]);
    }
  });

  it.each([
    ['', 'damaged'],
    ['{', 'damaged'],
    ['null', 'damaged'],
    ['[]', 'damaged'],
    [JSON.stringify({ v: 2 }), 'other version'],
    [encodeSnapshot(snapshot('other', [])), 'damaged'],
    [`{"v":1,"node":"n","inc":"i","rev":0,"series":[[9,"x",[]]],"keys":[]}`, 'damaged'],
    [
      `{"v":1,"node":"n","inc":"i","rev":0,"series":[[0,"",[-1,0,0,0,0,0,0,0]]],"keys":[]}`,
      'damaged',
    ],
    [encodeSnapshot(snapshot('n', [series('policy', 'x', 1)])).replace('"x"', LONG), 'damaged'],
    [encodeSnapshot(snapshot('n', [])).replace('"res":[]', '"res":[["r",0,0,"?",1]]'), 'damaged'],
    [encodeSnapshot(snapshot('n', [])).replace('"modes":[]', '"modes":[["a",9]]'), 'damaged'],
    [`{"v":1,"pad":"${'x'.repeat(1_000_000)}"}`, 'damaged'],
  ])('that is none of ours is told apart: %#', (text, why) => {
    expect(decodeSnapshot('n', text)).toBe(why);
  });
});
