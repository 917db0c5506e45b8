import fc from 'fast-check';
import { type Decision, type PolicyInput } from 'nestjs-weir';
import { LeaseRegistry } from '../../lib/local/lease-registry.js';
import { PolicyRegistry, splitRequest } from '../../lib/limiter/policy-registry.js';
import { TakeAll } from '../../lib/limiter/take-all.js';
import { type Acquire } from '../../lib/limiter/rate-limiter.js';
import { Refunds } from '../../lib/limiter/peek-refund.js';
import { WaitingLines } from '../../lib/limiter/waiting-lines.js';
import { MemoryStore } from '../../lib/stores/memory/memory-store.js';
import { GiveBack, type RemoteCheck } from '../../lib/stores/remote-store.js';
import { LateConnection, VirtualStore, type ReplyTime } from '../support/late-store.js';
import { ManualClock, settle } from '../support/manual-clock.js';

const IN_TIME: ReplyTime = () => 0;

/** One process: the limiter's parts for policies on a connection of our own. */
class Node {
  readonly policies: PolicyRegistry;
  readonly connection: LateConnection;
  readonly refunds: Refunds;
  private readonly lists: TakeAll;
  private readonly leaseRegistry: LeaseRegistry;

  constructor(fleet: Fleet, policies: Record<string, PolicyInput>, nodes: number) {
    const { clock, store } = fleet;
    const memory = new MemoryStore({ maxKeys: 1000, idleTimeoutMs: 1e9 }, clock);
    const replyTime: ReplyTime = (nowMs, shard) => fleet.replyTime(nowMs, shard);
    const shardOf = (key: string): number => fleet.shardOf(key);
    const { deadlineMs } = fleet;
    this.connection = new LateConnection(store, clock, nodes, deadlineMs, replyTime, shardOf);
    this.policies = new PolicyRegistry(policies, memory, true, 1000, clock);
    this.leaseRegistry = new LeaseRegistry(this.connection, clock);
    this.policies.leaseFrom(this.leaseRegistry);
    const { connection } = this;
    this.refunds = new Refunds(undefined, connection, new WaitingLines(clock, true), clock);
    const noQuota = (): never => {
      throw new Error('no quota');
    };
    this.lists = new TakeAll(noQuota, connection, this.refunds, clock);
  }

  take(request: Acquire): Decision | Promise<Decision> {
    const asked = splitRequest(request, this.policies, () => {});
    return this.lists.take(asked);
  }
}

/** Processes that share a store, whose replies come when `replyTime` says. Time runs by the millisecond. */
class Fleet {
  readonly clock = new ManualClock();
  readonly store = new VirtualStore(this.clock);
  readonly nodes: Node[];
  replyTime = IN_TIME;
  shardOf = (_key: string): number => 0;
  /** When requests were admitted, in milliseconds from the start. */
  readonly admissions: number[] = [];
  private readonly startMs = this.clock.now() / 1000;

  constructor(
    policies: Record<string, PolicyInput>,
    nodes: number,
    readonly deadlineMs: number,
  ) {
    this.nodes = Array.from({ length: nodes }, () => new Node(this, policies, nodes));
  }

  get nowMs(): number {
    return this.clock.now() / 1000 - this.startMs;
  }

  ask(node = 0, request: Acquire = { policy: 'p', key: 'k' }): Promise<Decision> {
    const note = (decision: Decision): Decision => {
      if (decision.allowed) this.admissions.push(this.nowMs);
      return decision;
    };
    const decision = this.nodes[node]!.take(request);
    return decision instanceof Promise ? decision.then(note) : Promise.resolve(note(decision));
  }

  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed++) {
      this.clock.advance(1);
      for (const { connection } of this.nodes) connection.deliver();
      // Decisions are noted at this instant.
      await settle();
    }
  }

  /** Every node asks so many times per millisecond. */
  async load(seconds: number, perMs: number): Promise<void> {
    for (let ms = 0; ms < seconds * 1000; ms++) {
      for (let node = 0; node < this.nodes.length; node++) {
        for (let i = 0; i < perMs; i++) void this.ask(node);
      }
      await this.pass(1);
    }
  }

  /** Tokens that a bucket must have held for all admissions to be within its rate. */
  burstNeeded(ratePerSecond: number): number {
    let [need, most, lastMs] = [0, 0, 0];
    for (const ms of this.admissions) {
      need = Math.max(0, need - ((ms - lastMs) * ratePerSecond) / 1000) + 1;
      most = Math.max(most, need);
      lastMs = ms;
    }
    return most;
  }

  tokensOf(policy: string, key = 'k'): number {
    return this.store.tokensIn(this.nodes[0]!.policies.check({ policy, key }).limit, key);
  }
}

/** Replies take so long while the time is in the first part of each cycle, and no time else. */
function lateAtTimes(takesMs: number, duringMs: number, everyMs: number): ReplyTime {
  return (nowMs) => (nowMs % everyMs < duringMs ? takesMs : 0);
}

/** Spells of time in which every reply takes so long; the deadline is 20 ms. */
const schedules = fc.record({
  rate: fc.integer({ min: 1, max: 2000 }),
  // With fewer tokens than nodes the shares of all would be more than the burst.
  burst: fc.integer({ min: 4, max: 100 }),
  nodes: fc.integer({ min: 1, max: 4 }),
  sync: fc.constantFrom('exact' as const, 'leased' as const),
  failureMode: fc.constantFrom('closed' as const, 'local' as const),
  spells: fc.array(
    fc.record({
      takesMs: fc.constantFrom(0, 0, 21, 30, 60, 150),
      ms: fc.integer({ min: 1, max: 150 }),
      perMs: fc.integer({ min: 0, max: 3 }),
    }),
    { minLength: 2, maxLength: 12 },
  ),
});
const RUNS = Number(process.env.WEIR_RUNS ?? 60);

describe('answers of the store that come after the deadline', () => {
  describe('of requests that were refused meanwhile', () => {
    it.each(['exact', 'leased'] as const)(
      'bring back no tokens that the bucket has made up for: %s',
      async (sync) => {
        const policy: PolicyInput = { rate: 400, burst: 50, failureMode: 'closed', sync };
        const fleet = new Fleet({ p: policy }, 2, 400);
        fleet.replyTime = lateAtTimes(450, 800, 2500);
        await fleet.load(8, 2);
        expect(fleet.burstNeeded(400)).toBeLessThanOrEqual(50 + 1e-6);
        // Between the times there is as much as ever.
        const between = fleet.admissions.filter((ms) => ms % 2500 >= 1300);
        expect(between.length).toBeGreaterThan(0.9 * 400 * 1.2 * 3);
      },
    );

    it('bring back what the bucket has not', async () => {
      const policy: PolicyInput = { rate: 10, burst: 10, failureMode: 'closed' };
      const fleet = new Fleet({ p: policy }, 1, 20);
      fleet.replyTime = () => 50;
      const refused = fleet.ask(0, { policy: 'p', key: 'k', cost: 8 });
      await fleet.pass(20);
      expect(await refused).toMatchObject({ allowed: false, source: 'fallback' });
      expect(fleet.tokensOf('p')).toBeCloseTo(2.2, 6);
      await fleet.pass(30);
      // 8 were taken, and half a token has flowed in since: in all it is what there would have been.
      expect(fleet.tokensOf('p')).toBeCloseTo(10, 6);
    });

    it('in a sliding window are as if they had not been asked', async () => {
      const policy: PolicyInput = {
        algorithm: 'sliding-window',
        rate: 10,
        period: '1s',
        failureMode: 'closed',
      };
      const fleet = new Fleet({ p: policy }, 1, 20);
      const cost = (tokens: number): Acquire => ({ policy: 'p', key: 'k', cost: tokens });
      fleet.replyTime = () => 300;
      const refused = fleet.ask(0, cost(8));
      await fleet.pass(299);
      expect((await refused).allowed).toBe(false);
      fleet.replyTime = IN_TIME;
      await fleet.ask(0, cost(2));
      expect((await fleet.ask(0, cost(1))).allowed).toBe(false);
      await fleet.pass(1);
      expect((await fleet.ask(0, cost(8))).allowed).toBe(true);
      expect((await fleet.ask(0, cost(1))).allowed).toBe(false);
    });
  });

  describe('of requests that passed by share', () => {
    it('leave the fleet at its rate, however often the store is late', async () => {
      const fleet = new Fleet({ p: { rate: 200, sync: 'exact' } }, 4, 100);
      fleet.replyTime = lateAtTimes(160, 60, 400);
      await fleet.load(8, 1);
      const counted = fleet.admissions.filter((ms) => ms >= 2000 && ms < 8000).length;
      expect(counted / 6).toBeLessThanOrEqual(1.1 * 200);
      expect(counted / 6).toBeGreaterThan(0.9 * 200);
      expect(fleet.burstNeeded(200)).toBeLessThanOrEqual(2 * 200);
    });

    it('are a debt if the store denied them, told as an empty bucket and its true wait', async () => {
      const fleet = new Fleet({ p: { rate: 10, period: '10s' } }, 1, 20);
      await fleet.ask(0, ALL);
      expect(await byShare(fleet, ALL)).toMatchObject({ allowed: true, source: 'fallback' });
      // It took 30 ms until that was known.
      expect(fleet.tokensOf('p')).toBeCloseTo(-9.97, 6);
      const denied = await fleet.ask();
      expect(denied).toMatchObject({ allowed: false, remaining: 0, source: 'store' });
      expect(denied.retryAfterMs).toBe(10_970);
      expect(denied.resetMs).toBeGreaterThanOrEqual(denied.retryAfterMs);

      await fleet.pass(10_970);
      expect((await fleet.ask()).allowed).toBe(true);
    });

    it('stay spent if the store had granted them', async () => {
      const fleet = new Fleet({ p: { rate: 10, period: '1d' } }, 1, 20);
      expect(await byShare(fleet, { ...ONE, cost: 4 })).toMatchObject({ allowed: true });
      expect(fleet.tokensOf('p')).toBeCloseTo(6, 4);
    });

    it('are no debt where the policy lets everything pass', async () => {
      const fleet = new Fleet({ p: { rate: 10, period: '1d', failureMode: 'open' } }, 1, 20);
      await fleet.ask(0, ALL);
      expect(await byShare(fleet, ALL)).toMatchObject({ allowed: true, source: 'fallback' });
      expect(fleet.tokensOf('p')).toBeCloseTo(0, 4);
      // Tokens that the store had granted were used, and stay spent.
      const other = { ...ALL, key: 'other' };
      expect(await byShare(fleet, other)).toMatchObject({ allowed: true });
      expect(fleet.tokensOf('p', 'other')).toBeCloseTo(0, 4);
    });

    it('are no debt of a policy that only watches, unless its share gave them', async () => {
      const fleet = new Fleet({ p: { rate: 10, period: '1d', shadow: true } }, 1, 20);
      await fleet.ask(0, ALL);
      await byShare(fleet, ALL);
      expect(fleet.tokensOf('p')).toBeCloseTo(-10, 3);
      const fresh = new Fleet({ p: { rate: 10, period: '1d', shadow: true } }, 1, 20);
      await byShare(fresh, ALL);
      expect(fresh.tokensOf('p')).toBeCloseTo(0, 3);
      // The share is empty now, so this one is counted as denied; what the store says is the same.
      expect(await byShare(fresh, ONE)).toMatchObject({ allowed: true, source: 'fallback' });
      expect(fresh.tokensOf('p')).toBeCloseTo(0, 3);
    });
  });

  it('property: however late they are, a closed policy keeps its bound, and one by share is one burst above', async () => {
    await fc.assert(
      fc.asyncProperty(schedules, async ({ rate, burst, nodes, sync, failureMode, spells }) => {
        const fleet = new Fleet({ p: { rate, burst, sync, failureMode } }, nodes, 20);
        for (const { takesMs, ms, perMs } of spells) {
          fleet.replyTime = () => takesMs;
          await fleet.load(ms / 1000, perMs);
        }
        const latestMs = Math.max(...spells.map(({ takesMs }) => takesMs));
        const most = failureMode === 'closed' ? burst : 2 * burst + (rate * latestMs) / 1000;
        expect(fleet.burstNeeded(rate)).toBeLessThanOrEqual(most + 1e-6);
      }),
      { numRuns: RUNS },
    );
  });

  describe('of lists', () => {
    const DAILY: PolicyInput = { rate: 10, period: '1d' };
    const BOTH: Acquire = [
      { policy: 'p', key: 'k', cost: 4 },
      { policy: 'q', key: 'k', cost: 4 },
    ];

    it('charge every check of what passed by share if the store denied one, and so took none', async () => {
      const fleet = new Fleet({ p: DAILY, q: DAILY }, 1, 20);
      await fleet.ask(0, { policy: 'q', key: 'k', cost: 9 });
      expect(await byShare(fleet, BOTH)).toMatchObject({ allowed: true, source: 'fallback' });
      expect([fleet.tokensOf('p'), fleet.tokensOf('q')]).toEqual([near(6), near(-3)]);
    });

    it('give back all that the store took if one of them is refused without it', async () => {
      const fleet = new Fleet({ p: DAILY, q: { ...DAILY, failureMode: 'closed' } }, 1, 20);
      expect(await byShare(fleet, BOTH)).toMatchObject({ allowed: false });
      expect([fleet.tokensOf('p'), fleet.tokensOf('q')]).toEqual([near(10), near(10)]);
    });

    it.each<[string, number, PolicyInput, number, number[]]>([
      [
        'passed: what one shard gave stays spent, what the other denied is owed',
        9,
        DAILY,
        30,
        [6, -3],
      ],
      ['passed, and all was granted: it stays spent', 1, DAILY, 30, [6, 5]],
      ['passed, and one shard never answers: the other stays spent', 0, DAILY, 1e9, [6, 6]],
      ['refused: what either gave goes back', 0, { ...DAILY, failureMode: 'closed' }, 30, [10, 10]],
      [
        'refused, one shard denied it: what the other gave goes back',
        9,
        { ...DAILY, failureMode: 'closed' },
        30,
        [10, 1],
      ],
    ])('in two shards, one of them late: %s', async (_what, used, q, takesMs, left) => {
      const fleet = new Fleet({ p: DAILY, q }, 1, 20);
      fleet.shardOf = (key) => (key === 'here' ? 0 : 1);
      await fleet.ask(0, { policy: 'q', key: 'there', cost: Math.max(1, used) });
      if (used === 0)
        fleet.nodes[0]!.connection.submit(new GiveBack([checkOf(fleet, 'q', 'there')]));
      fleet.replyTime = (_nowMs, shard) => (shard === 0 ? 5 : takesMs);
      const decided = fleet.ask(0, [
        { policy: 'p', key: 'here', cost: 4 },
        { policy: 'q', key: 'there', cost: 4 },
      ]);
      await fleet.pass(40);
      expect((await decided).allowed).toBe(q === DAILY);
      expect([fleet.tokensOf('p', 'here'), fleet.tokensOf('q', 'there')]).toEqual(left.map(near));
    });

    it('of a window go back where they were counted, if the decision says when that was', async () => {
      const fleet = new Fleet({ p: { algorithm: 'sliding-window', rate: 10 } }, 1, 20);
      const request = { policy: 'p', key: 'k', cost: 3 };
      await fleet.ask(0, request);
      await fleet.pass(500);
      const decision = await fleet.ask(0, request);
      const [node] = fleet.nodes;
      const done = node!.refunds.refund(
        splitRequest(request, node!.policies, () => {}),
        decision,
      );
      await fleet.pass(1);
      await done;
      expect(await fleet.ask(0, request)).toMatchObject({ allowed: true, remaining: 4 });
      await fleet.pass(500);
      expect(await fleet.ask(0, request)).toMatchObject({ allowed: true, remaining: 4 });
    });

    it('in two shards, both in time: what one gave goes back whole if the other denied', async () => {
      const fleet = new Fleet({ p: { rate: 1000, burst: 10 }, q: DAILY }, 1, 20);
      fleet.shardOf = (key) => (key === 'here' ? 0 : 1);
      await fleet.ask(0, { policy: 'q', key: 'there', cost: 10 });
      fleet.replyTime = () => 3;
      const denied = fleet.ask(0, [
        { policy: 'p', key: 'here', cost: 10 },
        { policy: 'q', key: 'there' },
      ]);
      await fleet.pass(3);
      expect((await denied).allowed).toBe(false);
      expect(fleet.tokensOf('p', 'here')).toBe(10);
    });
  });

  describe('and refunds', () => {
    it('of tokens that a share gave go back to the share, not to the store', async () => {
      const fleet = new Fleet({ p: { rate: 10, period: '1d' } }, 1, 20);
      const [node] = fleet.nodes;
      await fleet.ask(0, ALL);
      fleet.replyTime = () => 1e9;
      const late = fleet.ask(0, ALL);
      await fleet.pass(20);
      const asked = splitRequest(ALL, node!.policies, () => {});
      await node!.refunds.refund(asked, await late);
      expect(fleet.tokensOf('p')).toBeCloseTo(0, 3);
      const again = fleet.ask(0, ALL);
      await fleet.pass(20);
      expect(await again).toMatchObject({ allowed: true, source: 'fallback' });
    });

    it('of what passed because the policy is open go nowhere', async () => {
      const fleet = new Fleet({ p: { rate: 10, period: '1d', failureMode: 'open' } }, 1, 20);
      const [node] = fleet.nodes;
      await fleet.ask(0, ALL);
      fleet.replyTime = () => 1e9;
      const late = fleet.ask(0, ALL);
      await fleet.pass(20);
      node!.refunds.giveBack(
        splitRequest(ALL, node!.policies, () => {}),
        await late,
      );
      expect(fleet.tokensOf('p')).toBeCloseTo(0, 3);
    });
  });
});

const ONE = { policy: 'p', key: 'k' };
const ALL = { ...ONE, cost: 10 };

/** Asks a store that answers 10 ms after the deadline of 20 ms; all is settled when this resolves. */
async function byShare(fleet: Fleet, request: Acquire): Promise<Decision> {
  const { replyTime } = fleet;
  fleet.replyTime = () => 30;
  const decided = fleet.ask(0, request);
  await fleet.pass(1);
  fleet.replyTime = IN_TIME;
  await fleet.pass(29);
  fleet.replyTime = replyTime;
  return decided;
}

function checkOf(fleet: Fleet, policy: string, key: string): RemoteCheck {
  return fleet.nodes[0]!.policies.check({ policy, key });
}

/** A limit of ten a day gains next to nothing in a test. */
function near(tokens: number): number {
  return expect.closeTo(tokens, 3) as number;
}
