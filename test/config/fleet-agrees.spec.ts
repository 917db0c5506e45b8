import fc from 'fast-check';
import { type ConfigSnapshot } from '../../lib/config/rate-limit-config.js';
import { snapshotOf } from '../../lib/config/snapshot.js';
import { type ConfigRecord } from '../../lib/stores/config-store.js';
import { settle } from '../support/manual-clock.js';
import { Fleet, limitOf, type FleetNode } from './fleet.js';

const NODES = 4;
/** Without `size` fast-check would try short lists almost only. */
const LENGTH = { minLength: 5, maxLength: 40, size: 'max' } as const;

const node = fc.nat({ max: NODES - 1 });
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('update' as const), node }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stage' as const), node }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rollback' as const), node }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('cut' as const), node }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('mend' as const), node }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const), node }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('late hints' as const), node }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('time' as const),
      ms: fc.integer({ min: 1, max: 9000 }),
    }),
  },
);
const flush = fc.record({ do: fc.constant('flush' as const) });

type Step = (typeof step extends fc.Arbitrary<infer S> ? S : never) | { readonly do: 'flush' };

/** Chances of bad luck, drawn from a list, so that a failure can be repeated. */
const luck = fc.infiniteStream(fc.nat({ max: 9 }));

/** A fleet on a bad network, and everything that was ever written. */
class Trial {
  readonly fleet = new Fleet();
  readonly written: ConfigRecord[] = [];
  /** Updates that were confirmed, by the policy that each one added. */
  readonly confirmed: string[] = [];
  /** Those among all updates that were to hold later. */
  readonly staged = new Set<string>();
  private readonly seen: FleetNode[] = [];
  private nodes: FleetNode[] = [];
  private updates = 0;
  private begun: Promise<unknown>[] = [];
  private names = 0;

  constructor(private readonly luck: () => number) {
    this.watchStore();
  }

  async open(): Promise<void> {
    for (let i = 0; i < NODES; i++) this.nodes.push(await this.startNode());
  }

  async run(one: Step): Promise<void> {
    switch (one.do) {
      case 'update':
        return this.update(this.nodes[one.node]!, {});
      case 'stage':
        return this.update(this.nodes[one.node]!, { effectiveAt: this.nowMs() + 3000 });
      case 'rollback':
        return this.begin(this.nodes[one.node]!.config.rollback(1));
      case 'cut':
        this.nodes[one.node]!.wire.isDown = true;
        return;
      case 'mend':
        this.nodes[one.node]!.wire.isDown = false;
        return;
      case 'restart':
        await this.nodes[one.node]!.config.close();
        this.nodes[one.node] = await this.startNode();
        return;
      case 'late hints':
        return this.nodes[one.node]!.wire.tellLate();
      case 'time':
        return this.fleet.clock.advanceAsync(one.ms);
      case 'flush':
        this.fleet.flush();
        this.watchStore();
        return;
    }
  }

  /** The network is well again, and a few polls pass. */
  async recover(): Promise<void> {
    for (const { wire } of this.nodes) {
      wire.isDown = false;
      wire.readFate = wire.writeFate = () => 'ok';
    }
    for (let i = 0; i < 4; i++) await this.fleet.poll();
    await Promise.all(this.begun);
  }

  async close(): Promise<void> {
    for (const { config } of this.nodes) await config.close();
  }

  current(): ConfigSnapshot[] {
    return this.nodes.map(({ config }) => config.current());
  }

  /** The snapshots that each process ever used, in order. */
  used(): (readonly ConfigSnapshot[])[] {
    return this.seen.map((one) => one.used);
  }

  private async startNode(): Promise<FleetNode> {
    const one = this.fleet.node(`n${this.names++}`, { code: { document: pair(1) } });
    this.seen.push(one);
    one.wire.readFate = () => (this.luck() === 0 ? 'fail' : 'ok');
    one.wire.writeFate = () => (['lose', 'fail'] as const)[this.luck()] ?? 'ok';
    one.wire.hintFate = () => [0, 0, 0, 0, 2, 3][this.luck()] ?? 1;
    await one.config.start();
    return one;
  }

  /** Not waited for: several are on their way at once. */
  private update({ config }: FleetNode, options: { effectiveAt?: number }): void {
    const name = `u${++this.updates}`;
    if (options.effectiveAt !== undefined) this.staged.add(name);
    const { policies } = pair(this.updates + 1);
    const more = MORE[this.updates % MORE.length]!;
    const patch = { ...more, policies: { ...policies, ...more.policies, [name]: { rate: '1/s' } } };
    this.begin(config.update(patch, options).then(() => this.confirmed.push(name)));
  }

  /** The outcome of the work depends on luck; that it comes to an end does not. */
  private begin(work: Promise<unknown>): void {
    this.begun.push(work.catch(() => settle()));
  }

  private nowMs(): number {
    return this.fleet.clock.epochMs(this.fleet.clock.now());
  }

  private watchStore(): void {
    const { store } = this.fleet;
    const write = store.write.bind(store);
    store.write = async (draft, ...more) => {
      const answer = await write(draft, ...more);
      const { revision, nowMs } = answer;
      if (answer.written) this.written.push({ ...draft, revision, atMs: nowMs });
      return answer;
    };
  }
}

function* noBadLuck(): Generator<number, never> {
  for (;;) yield 9;
}

/** Further content of updates: things come, change their place, and go. */
const MORE: readonly { readonly policies?: object; readonly [section: string]: unknown }[] = [
  { policies: { extra: { rate: 5, tiers: { vip: 9 } }, 7: { rate: 7 } } },
  { profiles: { sale: { policies: { extra: { rate: 50 }, toString: { rate: 3 } } } } },
  { policies: { extra: { rate: 6, tiers: { vip: null }, key: ['ip'] }, toString: { rate: 1 } } },
  { profile: 'sale' },
  { policies: { extra: { rate: 8, burst: 3 } }, degradation: { slow: '1s' } },
  { policies: { extra: null, 7: null } },
  { profile: null },
  { profiles: null, policies: { toString: null } },
];

/** Two policies that always say the same, so that a mix of two revisions would show. */
function pair(rate: number) {
  return { policies: { ...limitOf(rate).policies, twin: { rate: `${rate}/s` } } };
}

const anew = (record: ConfigRecord): ConfigRecord =>
  JSON.parse(JSON.stringify(record)) as ConfigRecord;

async function tryOut(steps: readonly Step[], bad: Iterator<number>): Promise<Trial> {
  const trial = new Trial(() => bad.next().value as number);
  await trial.open();
  for (const one of steps) {
    await trial.run(one);
    await settle();
  }
  await trial.recover();
  return trial;
}

function expectAgreement(trial: Trial): void {
  const [first, ...others] = trial.current();
  for (const other of others) expect(other).toEqual(first);
}

function expectWholeAndGrowing(trial: Trial): void {
  const records = new Map(trial.written.map((one) => [`${one.revision} ${one.hash}`, one]));
  for (const used of trial.used()) {
    used.forEach(({ revision, hash, document }, index) => {
      expect(revision).toBeGreaterThanOrEqual(used[index - 1]?.revision ?? 0);
      const record = records.get(`${revision} ${hash}`);
      // A snapshot made of messages, known layers or prepared parts is the same as one read anew.
      if (revision > 0)
        expect(snapshotOf(anew(record!), revision)).toMatchObject({ hash, document });
      expect(document.policies!.twin!.rate).toBe(document.policies!.api!.rate);
    });
  }
}

describe('processes with lost, doubled and late hints, failing reads and writes', () => {
  it('end on one revision; none goes back, or uses what was not written whole', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, LENGTH), luck, async (steps, bad) => {
        const trial = await tryOut(steps, bad);
        expectAgreement(trial);
        expectWholeAndGrowing(trial);
        // Once written, always written: revisions have no holes and no doubles.
        const revisions = new Set(trial.written.map(({ revision }) => revision));
        expect(Math.max(...revisions)).toBe(revisions.size);
        await trial.close();
      }),
      { numRuns: 40 },
    );
  });

  it('lose no update that was confirmed, but those that no longer fit at their time', async () => {
    const noRollback = step.filter((one) => one.do !== 'rollback');
    await fc.assert(
      fc.asyncProperty(fc.array(noRollback, LENGTH), luck, async (steps, bad) => {
        const trial = await tryOut(steps, bad);
        const policies = trial.current()[0]!.document.policies!;
        const lost = trial.confirmed.filter((name) => !Object.hasOwn(policies, name));
        const dropped = trial.written.filter(({ kind }) => kind === 'drop');
        expect([...trial.staged]).toEqual(expect.arrayContaining(lost));
        expect(lost.length).toBeLessThanOrEqual(dropped.length);
        await trial.close();
      }),
      { numRuns: 25 },
    );
  });

  it('tell of an update that no longer fits: its profile has gone meanwhile', async () => {
    const update: Step = { do: 'update', node: 0 };
    const steps = [update, update, { ...update, do: 'stage' } as const];
    const trial = await tryOut([...steps, update, update, update, update], noBadLuck());
    expect(trial.confirmed).toHaveLength(7);
    expect(Object.keys(trial.current()[0]!.document.policies!)).not.toContain('u3');
    expect(trial.written.filter(({ kind }) => kind === 'drop')).toHaveLength(1);
    await trial.close();
  });

  it('agree again after the store has lost everything, several times', async () => {
    const steps = fc.array(
      fc.oneof({ weight: 8, arbitrary: step }, { weight: 1, arbitrary: flush }),
      LENGTH,
    );
    await fc.assert(
      fc.asyncProperty(steps, luck, async (some, bad) => {
        const trial = await tryOut([...some, { do: 'flush' }], bad);
        expectAgreement(trial);
        expectWholeAndGrowing(trial);
        await trial.close();
      }),
      { numRuns: 25 },
    );
  });
});
