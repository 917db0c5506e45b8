import fc from 'fast-check';
import { QuotaLedger } from '../../../lib/algorithms/quota/quota-ledger.js';
import { compileQuota } from '../../../lib/algorithms/quota/quota-limits.js';
import { type AppReply, type LateGrant } from '../../../lib/algorithms/quota/quota-protocol.js';
import { type Movement } from '../../support/quota-books.js';
import { ask, type Ask } from '../../support/quota-calls.js';
import { START_MICROS } from '../../support/quota-fleet.js';
import { figures, mostBeyond } from '../../support/quota-histories.js';

const CAPACITY = 1000;
/** B, and the guaranteed bucket: g × B / 2C. */
const DEPTH = 200;
const STOCK = 50;
const ELASTIC = { guaranteed: 500, burst: 2000, elastic: true };
const GIVEN = figures([ELASTIC], { capacity: CAPACITY });

/** Calls of one node about one app, at milliseconds since the ledger was made. */
class Caller {
  readonly ledger: QuotaLedger;
  private seq = 0;

  constructor(given = GIVEN) {
    this.ledger = new QuotaLedger(compileQuota(given));
  }

  say(atMs: number, asked: Ask): AppReply {
    const call = ask(asked, { seq: ++this.seq });
    return this.ledger.settle(START_MICROS + atMs * 1000, call).apps[0]!;
  }

  late(tokens: number, takenMs: number): LateGrant {
    return { tokens, takenMicros: START_MICROS + takenMs * 1000 };
  }

  /** Tokens in the buckets of the cluster and of the app. */
  get levels(): { level: number; stock: number; room: number } {
    const { cluster, apps } = this.ledger.peek()!;
    const { stock, room } = apps[0]!;
    return { level: cluster.level / 1e6, stock: stock / 1e6, room: room / 1e6 };
  }
}

describe('tokens that were granted too late', () => {
  it('go back whole if no time has passed since they were taken', () => {
    const caller = new Caller();
    caller.say(0, {});
    const before = caller.levels;
    expect(caller.say(0, { count: 40 }).needs).toEqual([40]);
    caller.say(0, { late: caller.late(40, 0) });
    expect(caller.levels).toEqual(before);
    expect(caller.ledger.status()).toMatchObject({ used: 0 });
  });

  it('go back less what has flowed into each bucket since, by the rate of that bucket', () => {
    const caller = new Caller();
    expect(caller.say(0, { count: DEPTH }).needs).toEqual([DEPTH]);
    caller.say(50, {});
    const drained = caller.levels;
    expect(caller.say(50, { count: 50 }).needs).toEqual([50]);
    caller.say(50, { late: caller.late(DEPTH, 0) });
    expect(caller.levels).toEqual({
      level: drained.level - 50 + (DEPTH - 0.05 * CAPACITY),
      stock: STOCK,
      room: drained.room - 50 + (DEPTH - 0.05 * 2000),
    });
  });

  it('are gone once every bucket has made good for them', () => {
    const caller = new Caller();
    caller.say(0, { count: DEPTH });
    caller.say(1000, { count: 1000 });
    const before = caller.levels;
    caller.say(1000, { late: caller.late(DEPTH, 0) });
    expect(caller.levels).toEqual(before);
  });

  it('never make two bursts of one, whoever else drains the buckets meanwhile', () => {
    const steps = fc.array(
      fc.record({
        gapMicros: fc.oneof(fc.constant(0), fc.nat({ max: 60_000 }), fc.nat({ max: 400_000 })),
        node: fc.nat({ max: 3 }),
        count: fc.nat({ max: 2 * DEPTH }),
        isLate: fc.boolean(),
      }),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(steps, (history) => {
        const ledger = new QuotaLedger(compileQuota(GIVEN));
        const admissions: Movement[] = [];
        const late = new Map<number, LateGrant>();
        let now = START_MICROS;
        for (const [turn, { gapMicros, node, count, isLate }] of history.entries()) {
          now += gapMicros;
          const told = late.get(node);
          late.delete(node);
          const asked = ask(
            { count, ...(told && { late: told }) },
            { node: `n${node}`, seq: turn + 1 },
          );
          const tokens = ledger.settle(now, asked).apps[0]!.needs[0] ?? 0;
          if (isLate) late.set(node, { tokens, takenMicros: now });
          else admissions.push({ atMicros: now, app: 0, tokens });
        }
        expect(mostBeyond(admissions, CAPACITY)).toBeLessThanOrEqual(DEPTH + 1e-6);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('tokens that were used while the answer was late, and not granted', () => {
  it('are a debt that what flows in pays first', () => {
    const caller = new Caller();
    expect(caller.say(0, { count: 1000 }).needs).toEqual([DEPTH]);
    caller.say(0, { owed: 100 });
    expect(caller.levels).toMatchObject({ level: -100, stock: -STOCK });
    expect(caller.ledger.status()).toMatchObject({ used: DEPTH + 100, level: 0 });
    expect(caller.say(100, { count: 1000 })).toMatchObject({ needs: [0], remaining: 0 });
    expect(caller.say(150, { count: 1000 }).needs).toEqual([50]);
  });

  it('are a debt of one burst at most', () => {
    const caller = new Caller();
    caller.say(0, { owed: 1_000_000 });
    expect(caller.levels).toEqual({ level: -DEPTH, stock: -STOCK, room: -2000 });
  });

  it('make no other app richer', () => {
    const caller = new Caller(
      figures([ELASTIC, { ...ELASTIC, guaranteed: 300 }], { capacity: CAPACITY }),
    );
    caller.say(0, { count: STOCK });
    caller.say(0, { owed: STOCK });
    expect(caller.levels).toMatchObject({ level: DEPTH - 2 * STOCK, stock: -STOCK });
    expect(caller.say(0, { app: 1, count: 1000 }).needs).toEqual([DEPTH - 2 * STOCK]);
    expect(caller.levels).toMatchObject({ level: 0 });
  });

  it('stay owed in part when the limits change', () => {
    const caller = new Caller();
    caller.say(0, { owed: DEPTH + 100 });
    const { level } = caller.levels;
    const half = figures([{ ...ELASTIC, guaranteed: 250 }], { capacity: CAPACITY / 2 });
    caller.ledger.change(START_MICROS, compileQuota(half, undefined, 1));
    expect(caller.levels.level).toBe(level / 2);
  });

  it('are a debt of one burst at most also when the limits change, whatever the figures', () => {
    const given = fc.record({
      capacity: fc.integer({ min: 100_000, max: 1_000_000 }),
      guaranteed: fc.integer({ min: 1000, max: 90_000 }),
      burst: fc.integer({ min: 90_000, max: 1_000_000 }),
    });
    fc.assert(
      fc.property(given, given, (before, after) => {
        const [from, to] = [before, after].map(({ capacity, ...app }) =>
          figures([{ ...app, elastic: true }], { capacity }),
        ) as [typeof GIVEN, typeof GIVEN];
        const caller = new Caller(from);
        caller.say(0, { owed: 10_000_000 });
        const limits = compileQuota(to, undefined, 1);
        caller.ledger.change(START_MICROS, limits);
        const { cluster, apps } = caller.ledger.peek()!;
        const { stockDepth, ceilingDepth } = limits.apps[0]!;
        expect(cluster.level).toBeGreaterThanOrEqual(-limits.depth);
        expect(apps[0]!.stock).toBeGreaterThanOrEqual(-stockDepth);
        expect(apps[0]!.room).toBeGreaterThanOrEqual(-ceilingDepth);
      }),
      { numRuns: 500 },
    );
  });
});
