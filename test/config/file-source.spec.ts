import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FileSource } from '../../lib/config/sources/file-source.js';
import { SourceLayer, type SourceLayerOptions } from '../../lib/config/sources/source-layer.js';
import { ManualClock, settle } from '../support/manual-clock.js';
import { until } from '../support/until.js';

let dir: string;
let clock: ManualClock;
let layers: unknown[];
let faults: string[];
const open: SourceLayer[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'weir-file-'));
  clock = new ManualClock();
  layers = [];
  faults = [];
});

afterEach(() => {
  for (const layer of open.splice(0)) layer.close();
  rmSync(dir, { recursive: true, force: true });
});

const policy = (rate: number) => ({ policies: { api: { rate } } });
const write = (path: string, rate: number) => writeFileSync(path, JSON.stringify(policy(rate)));

function follow(path: string, options: SourceLayerOptions = {}): SourceLayer {
  const layer = new SourceLayer(new FileSource(path, { clock }), {
    onChange: (one) => layers.push(one),
    onFault: ({ message }) => faults.push(message),
    ...options,
  });
  open.push(layer);
  void layer.open();
  return layer;
}

/** Time goes on until something has been seen. */
async function untilSeen(list: unknown[], count: number): Promise<void> {
  await until(
    () => {
      clock.advance(50);
      return list.length >= count;
    },
    { timeoutMs: 20_000, intervalMs: 1, what: `${count} of ${JSON.stringify(list)}` },
  );
}

/** Some polls go by. */
async function later(): Promise<void> {
  for (let i = 0; i < 200; i++) {
    clock.advance(50);
    await settle();
  }
}

it('is read when it is opened and when it changes', async () => {
  const file = join(dir, 'weir.json');
  write(file, 1);
  const layer = follow(file);
  await untilSeen(layers, 1);
  write(file, 2);
  await untilSeen(layers, 2);
  expect(layers).toEqual([policy(1), policy(2)]);
  expect(layer.current).toBe(layers[1]);
  expect(Object.isFrozen(layer.current)).toBe(true);
});

it('is looked at every two seconds', async () => {
  const file = join(dir, 'weir.json');
  write(file, 1);
  const source = new FileSource(file, { clock });
  const read = source.read();
  await until(() => clock.pending === 1);
  clock.advance(50);
  await read;
  write(file, 2);
  let changes = 0;
  const stop = source.watch(() => changes++);
  clock.advance(1999);
  await later0();
  expect(changes).toBe(0);
  clock.advance(1);
  await until(() => changes === 1);
  stop();
  expect(clock.pending).toBe(0);
});

async function later0(): Promise<void> {
  for (let i = 0; i < 20; i++) await settle();
}

it('says nothing new if only its form changes', async () => {
  const file = join(dir, 'weir.yaml');
  writeFileSync(file, 'policies: { api: { rate: 1 } }');
  follow(file);
  await untilSeen(layers, 1);
  writeFileSync(file, '# the same\npolicies:\n  api:\n    rate: 1\n');
  await later();
  write(file, 2);
  await untilSeen(layers, 2);
  expect(layers).toEqual([policy(1), policy(2)]);
});

it('is not taken while it is half written', async () => {
  const file = join(dir, 'weir.yaml');
  // Each part is a document that is right, and not what is meant.
  writeFileSync(file, 'policies:\n  api:\n    rate: 1\n');
  const source = new FileSource(file, { clock });
  let value: unknown;
  void source.read().then((read) => (value = read));
  for (const part of ['0', '00', '00\n  other:\n    rate: 5']) {
    await until(() => clock.pending === 1, { what: 'a pause before the next read' });
    writeFileSync(file, `policies:\n  api:\n    rate: 1${part}\n`);
    clock.advance(50);
    await later0();
  }
  await until(() => {
    clock.advance(50);
    return value !== undefined;
  });
  expect(value).toEqual({ policies: { api: { rate: 1000 / 10 }, other: { rate: 5 } } });
});

it('keeps the last good one, and says once what is wrong', async () => {
  const file = join(dir, 'weir.json');
  write(file, 1);
  const layer = follow(file, { name: 'weir.json' });
  await untilSeen(layers, 1);
  writeFileSync(file, '{ "policies": ');
  await untilSeen(faults, 1);
  await later();
  writeFileSync(file, '');
  await untilSeen(faults, 2);
  writeFileSync(file, '{}');
  await untilSeen(faults, 3);
  writeFileSync(file, '{ "policies": { "api": { "rat": 5 } } }');
  await untilSeen(faults, 4);
  unlinkSync(file);
  await untilSeen(faults, 5);
  await later();
  expect(layer.fault?.message).toBe(faults[4]);
  expect(layer.current).toEqual(policy(1));
  write(file, 2);
  await untilSeen(layers, 2);
  expect(layer.fault).toBeUndefined();
  expect(faults).toEqual([
    expect.stringMatching(/weir.json:1:\d+: not JSON/),
    expect.stringContaining('is empty'),
    expect.stringContaining('1 fault in weir.json:\n  the document: is empty'),
    expect.stringContaining("policies.api.rat: no such field; did you mean 'rate'?"),
    expect.stringContaining(`cannot be read (ENOENT: no such file or directory, stat '${dir}`),
  ]);
});

it('may come later than the process', async () => {
  const file = join(dir, 'weir.json');
  const layer = follow(file);
  await untilSeen(faults, 1);
  expect(layer.current).toBeUndefined();
  write(file, 1);
  await untilSeen(layers, 1);
  expect(layer.current).toEqual(policy(1));
});

it('may be a link into a directory that is swapped, as in Kubernetes', async () => {
  for (const version of ['v1', 'v2']) mkdirSync(join(dir, version));
  write(join(dir, 'v1', 'weir.json'), 1);
  write(join(dir, 'v2', 'weir.json'), 2);
  symlinkSync('v1', join(dir, '..data'));
  const file = join(dir, 'weir.json');
  symlinkSync(join('..data', 'weir.json'), file);
  follow(file);
  await untilSeen(layers, 1);
  symlinkSync('v2', join(dir, '..data_tmp'));
  renameSync(join(dir, '..data_tmp'), join(dir, '..data'));
  rmSync(join(dir, 'v1'), { recursive: true });
  await untilSeen(layers, 2);
  expect(layers).toEqual([policy(1), policy(2)]);
  expect(faults).toEqual([]);
});

it('must be a file, and not too large', async () => {
  follow(dir);
  await untilSeen(faults, 1);
  const file = join(dir, 'large.yaml');
  writeFileSync(file, '#'.repeat(2_000_000));
  follow(file);
  await untilSeen(faults, 2);
  expect(faults[0]).toContain('is not a file');
  expect(faults[1]).toContain('has 2000000 bytes; no more than 1048576 are read');
});
