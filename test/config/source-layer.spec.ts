import { SourceLayer, type ConfigSource } from '../../lib/config/sources/source-layer.js';
import { settle } from '../support/manual-clock.js';

const policy = (rate: number) => ({ policies: { api: { rate } } });

class Double implements ConfigSource {
  says: unknown = policy(1);
  reads = 0;
  stopped = 0;
  changed = (): void => undefined;
  held: Promise<void> | undefined;

  async read(): Promise<unknown> {
    this.reads++;
    await this.held;
    if (this.says instanceof Error) throw this.says;
    return this.says;
  }

  watch(changed: () => void): () => void {
    this.changed = changed;
    return () => this.stopped++;
  }
}

function follow(source: ConfigSource) {
  const [layers, faults]: [unknown[], string[]] = [[], []];
  const layer = new SourceLayer(source, {
    name: 'the source',
    onChange: (one) => layers.push(one),
    onFault: ({ message }) => faults.push(message),
  });
  return { layer, layers, faults };
}

it('reads when it is opened, and when the source says so', async () => {
  const source = new Double();
  const { layer, layers } = follow(source);
  expect(await layer.open()).toEqual(policy(1));
  source.says = policy(2);
  source.changed();
  await settle();
  expect(layers).toEqual([policy(1), policy(2)]);
});

it('needs no source that tells of changes', async () => {
  const rates = [1, 2];
  const { layer, layers } = follow({ read: async () => policy(rates.shift()!) });
  await layer.open();
  await layer.reload();
  expect(layers).toEqual([policy(1), policy(2)]);
});

it('keeps the last good one while the source fails or talks nonsense, and says so once', async () => {
  const source = new Double();
  const { layer, faults } = follow(source);
  await layer.open();
  for (const nonsense of [new Error('away'), new Error('away'), 5, 5, { polices: {} }, null]) {
    source.says = nonsense;
    await layer.reload();
  }
  expect(layer.current).toEqual(policy(1));
  expect(faults).toEqual([
    'away',
    expect.stringContaining('1 fault in the source:\n  the document: expected an object'),
    expect.stringContaining("polices: no such field; did you mean 'policies'?"),
    expect.stringContaining('the document: is empty'),
  ]);
  source.says = policy(1);
  await layer.reload();
  expect(layer.fault).toBeUndefined();
  source.says = new Error('away');
  await layer.reload();
  expect(faults).toHaveLength(5);
});

it('is not changed by what happens to the value later', async () => {
  const source = new Double();
  const says = policy(1);
  source.says = says;
  const { layer } = follow(source);
  await layer.open();
  says.policies.api.rate = 9;
  expect(layer.current).toEqual(policy(1));
});

it('reads once at a time, and once more for all that happened meanwhile', async () => {
  const source = new Double();
  let release = () => {};
  source.held = new Promise((resolve) => (release = resolve));
  const { layer } = follow(source);
  const opened = layer.open();
  for (let i = 0; i < 10; i++) source.changed();
  await settle();
  expect(source.reads).toBe(1);
  release();
  await opened;
  expect(source.reads).toBe(2);
});

it('hears nothing any more once it is closed', async () => {
  const source = new Double();
  let release = () => {};
  source.held = new Promise((resolve) => (release = resolve));
  const { layer, layers } = follow(source);
  const opened = layer.open();
  layer.close();
  release();
  await opened;
  source.changed();
  await settle();
  expect([layers.length, source.reads, source.stopped]).toEqual([0, 1, 1]);
});

it('takes a source that cannot be watched as a fault', async () => {
  const source = new Double();
  source.watch = () => {
    throw new Error('no ears');
  };
  const { layer, layers, faults } = follow(source);
  await layer.open();
  expect([faults, layers]).toEqual([['no ears'], [policy(1)]]);
});
