import { type ConfigLayer } from 'nestjs-weir';
import { deepestBurst } from '../chaos/admissions.js';
import { sharedMicros } from '../chaos/process/protocol.js';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { startProxy, startRedis, stopAll, until, type RedisProcess } from '../support/index.js';
import { ConfigNode } from './config-node.js';
import {
  documentOf,
  promoOf,
  sharedBurst,
  SHARED_PER_BURST,
  type NodeSetup,
} from './process/protocol.js';

const NODES = 5;
const UPDATES = 200;
const LARGEST_BURST = 59;
const SMALLEST_BURST = 20;
const LAST_STEP = 400;
const POLL_MS = 300;
/** For a machine that is short of time. */
const PATIENCE_MS = 3000;

let redis: RedisProcess;

beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
beforeEach(async () => void (redis = await startRedis()));
afterEach(() => redis.stop());
afterAll(stopAll);

function setup(n: number, more: Partial<NodeSetup> = {}): NodeSetup {
  return { url: redis.url, nodeId: `node-${n}`, pollMs: POLL_MS, step: 0, isBusy: true, ...more };
}

function startAll(more: Partial<NodeSetup> = {}): Promise<ConfigNode[]> {
  return Promise.all(Array.from({ length: NODES }, (_, n) => ConfigNode.start(setup(n, more))));
}

/** The same sequence every time, so that a failure can be seen again. */
function randomly(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return Math.floor((state / 0x80000000) * below);
  };
}

/** Mostly other figures, now and then a switch of the profile. */
function patchOf(random: (below: number) => number, number: number): ConfigLayer {
  if (random(5) === 0) return { profile: random(2) === 0 ? 'promo' : 'normal' };
  const step = random(LAST_STEP);
  return {
    ...documentOf(step),
    profiles: { promo: promoOf(step) },
    ...whole(number),
  };
}

/** Every update changes something. */
const whole = (number: number): ConfigLayer => ({ version: number + 1 });

async function everyoneOn(nodes: readonly ConfigNode[], revision: number): Promise<void> {
  await until(() => nodes.every((node) => node.revision === revision), {
    what: `everyone on ${revision}: ${nodes.map((node) => node.revision).join(' ')}`,
    timeoutMs: 30_000,
  });
}

/** A bucket of that rate and depth would have let all of it pass. */
function expectWithin(nodes: readonly ConfigNode[], burst: number, fromMicros = 0): void {
  const admitted = nodes.flatMap(({ spans }) => spans.filter(({ from }) => from >= fromMicros));
  expect(admitted.length).toBeGreaterThan(0);
  const asTokens = admitted.map((span) => ({
    ...span,
    cost: 1,
    app: '',
    source: 'store' as const,
  }));
  expect(deepestBurst(asTokens, SHARED_PER_BURST * burst)).toBeLessThanOrEqual(burst + 1);
}

describe('five processes on one Redis', () => {
  it('end on the same of 200 random updates, and use each of them whole', async () => {
    const nodes = await startAll();
    const random = randomly(20_261_116);
    const refusals: string[] = [];
    for (let number = 0; number < UPDATES; number += 2) {
      // Two writers at once, now and then from one process.
      const settled = await Promise.all(
        [number, number + 1].map((one) => nodes[random(NODES)]!.update(patchOf(random, one), one)),
      );
      for (const one of settled) if (one.report === 'refused') refusals.push(one.reason);
    }
    expect(refusals).toEqual([]);
    const last = await nodes[0]!.update(
      { ...documentOf(LAST_STEP), profile: 'normal', version: UPDATES + 1 },
      UPDATES,
    );
    const { revision } = last as { revision: number };
    expect(revision).toBe(1 + UPDATES + 1);
    await everyoneOn(nodes, revision);
    const settledAt = sharedMicros();
    expect(sharedBurst(LAST_STEP)).toBe(SMALLEST_BURST);
    // Long enough for the smaller limit to have shown itself.
    const seen = (): number =>
      nodes.flatMap(({ spans }) => spans.filter(({ from }) => from > settledAt)).length;
    await until(() => seen() > 4 * SMALLEST_BURST, { timeoutMs: 20_000, what: 'more requests' });
    const totals = await Promise.all(nodes.map((node) => node.close()));
    for (const [n, { asked, answered, failed, mixes, strays }] of totals.entries()) {
      expect({ n, failed, mixes, strays }).toEqual({ n, failed: 0, mixes: [], strays: [] });
      expect(answered).toBe(asked);
      const revisions = nodes[n]!.applied.map((one) => one.revision);
      expect(revisions).toEqual([...revisions].sort((a, b) => a - b));
      expect(nodes[n]!).toMatchObject({ step: LAST_STEP, warnings: [], errors: [] });
    }
    expectWithin(nodes, LARGEST_BURST);
    expectWithin(nodes, SMALLEST_BURST, settledAt);
  }, 120_000);

  it('hear of updates within one poll where no message of Redis reaches them', async () => {
    const proxy = await startProxy({ targetPort: redis.port });
    // Those without load hear of nothing from the replies of limits either.
    const nodes = await startAll({ url: proxy.url, isBusy: false });
    proxy.dropPushes(true);
    for (let number = 0; number < 3; number++) {
      const before = sharedMicros();
      const settled = await nodes[number]!.update(documentOf(number + 1), number);
      await everyoneOn(nodes, (settled as { revision: number }).revision);
      // A poll is at most a fifth longer than it says.
      expect((sharedMicros() - before) / 1000).toBeLessThan(1.2 * POLL_MS + PATIENCE_MS);
    }
    const totals = await Promise.all(nodes.map((node) => node.close()));
    expect(totals.map(({ failed, mixes }) => [failed, mixes])).toEqual(nodes.map(() => [0, []]));
    await proxy.close();
  });
});

describe('a rolling deploy', () => {
  it.each([
    ['without versions', undefined, undefined],
    ['with a higher version', 1, 2],
  ])('has one outcome %s, and nobody takes it back', async (_, before, after) => {
    const old = [0, 1, 2].map((n) =>
      ConfigNode.start(setup(n, { step: 1, configVersion: before })),
    );
    const nodes = await Promise.all(old);
    await everyoneOn(nodes, 1);
    for (const n of [3, 4]) {
      nodes.push(await ConfigNode.start(setup(n, { step: 2, configVersion: after })));
    }
    await everyoneOn(nodes, 2);
    // An old process that starts again after the new ones: with versions it follows, and says so.
    if (before !== undefined) {
      nodes.push(await ConfigNode.start(setup(5, { step: 1, configVersion: before })));
      await everyoneOn(nodes, 2);
    }
    await nodes[0]!.update({ policies: { shared: { cost: 1 } } }, 0);
    await everyoneOn(nodes, 3);
    expect(nodes.map(({ step }) => step)).toEqual(nodes.map(() => 2));
    for (const { applied } of nodes)
      expect(new Set(applied.map((one) => one.revision)).size).toBe(applied.length);
    expect(nodes.flatMap(({ warnings }) => warnings)).toHaveLength(1);
    const totals = await Promise.all(nodes.map((node) => node.close()));
    expect(totals.map(({ failed, mixes }) => [failed, mixes])).toEqual(nodes.map(() => [0, []]));
  });
});
