import fc from 'fast-check';
import { QuotaLedger } from '../../../lib/algorithms/quota/quota-ledger.js';
import { compileQuota } from '../../../lib/algorithms/quota/quota-limits.js';
import { type QuotaCall } from '../../../lib/algorithms/quota/quota-protocol.js';
import { QuotaFleet, START_MICROS } from '../../support/quota-fleet.js';
import { FAMILIES, anyScene, figures, mostBeyond } from '../../support/quota-histories.js';
import { ask } from '../../support/quota-calls.js';

const CAPACITY = 10_000;
const DEPTH = 2000;
/** C × pace. */
const LEARNING = 500;
const GIVEN = figures([{ guaranteed: 5000, burst: 20_000, elastic: true }], { capacity: CAPACITY });

function lostLedger(): QuotaLedger {
  const ledger = new QuotaLedger(compileQuota(GIVEN));
  ledger.settle(START_MICROS, ask({ count: 100 }));
  ledger.lose();
  return ledger;
}

/** Of which a node has seen the first state: what it can have at an instant after the loss. */
function haveAfterLoss(
  ledger: QuotaLedger,
  afterMs: number,
  call: Partial<QuotaCall> = {},
): number {
  const asked = ask({ count: 100_000 }, { seq: 2, seenEpoch: 1, seenSequence: 1, ...call });
  return ledger.settle(START_MICROS + afterMs * 1000, asked).apps[0]!.needs[0]!;
}

describe('after a loss', () => {
  it('a state that somebody has seen before starts empty, and in a new epoch', () => {
    const ledger = lostLedger();
    expect(haveAfterLoss(ledger, 1000)).toBe(0);
    expect(ledger.peek()!.cluster).toMatchObject({ epoch: 2, level: 0 });
    expect(ledger.peek()!.apps[0]).toMatchObject({ stock: 0, credit: 0, room: 0 });
  });

  it('a state that nobody has seen starts full; whoever has seen one empties it once', () => {
    const ledger = lostLedger();
    expect(haveAfterLoss(ledger, 0, { node: 'new', seenEpoch: 0, seenSequence: 0 })).toBe(DEPTH);
    expect(haveAfterLoss(ledger, 1, { seenSequence: 2 })).toBe(0);
    expect(ledger.peek()!.cluster.epoch).toBe(2);
  });

  it('a state that is older than what a node has seen is a loss too', () => {
    const ledger = new QuotaLedger(compileQuota(GIVEN));
    ledger.settle(START_MICROS, ask({ count: 1 }));
    const ahead = ask({ count: 1 }, { node: 'b', seenEpoch: 1, seenSequence: 2 });
    expect(ledger.settle(START_MICROS, ahead)).toMatchObject({ epoch: 2, sequence: 1 });
    const behind = ask({ count: 1 }, { node: 'c', seenEpoch: 1, seenSequence: 900 });
    expect(ledger.settle(START_MICROS, behind)).toMatchObject({ epoch: 2, sequence: 2 });
  });

  it('no more than C × pace gathers for one lease time, and all of it later', () => {
    const ledger = lostLedger();
    haveAfterLoss(ledger, 0);
    expect(haveAfterLoss(ledger, 999, { seq: 3, seenEpoch: 2 })).toBe(LEARNING);
    expect(haveAfterLoss(ledger, 1999, { seq: 4, seenEpoch: 2, seenSequence: 2 })).toBe(DEPTH);
  });

  it('the rate flows at once: the guarantee is there from the first call on', () => {
    const ledger = lostLedger();
    let granted = 0;
    for (let pace = 0; pace <= 20; pace++) {
      granted += haveAfterLoss(ledger, pace * 50, {
        seq: pace + 2,
        seenEpoch: pace === 0 ? 1 : 2,
        seenSequence: Math.max(1, pace),
      });
    }
    expect(granted).toBeGreaterThanOrEqual(5000);
    expect(granted).toBeLessThanOrEqual(CAPACITY);
  });
});

describe.each(FAMILIES)('%s', (_name, all) => {
  const scenes = fc.record({ scene: anyScene(all), at: fc.nat({ max: 20 }) });

  it('a loss admits at most C × pace beyond the bound; B more if no caller knew of it', () => {
    fc.assert(
      fc.property(scenes, ({ scene: { given, history }, at }) => {
        const fleet = new QuotaFleet(given).run(history.slice(0, at));
        fleet.ledger.lose();
        let wasKnown = true;
        for (const step of history.slice(at)) {
          const isFirst = fleet.ledger.peek() === undefined;
          fleet.step(step);
          const state = fleet.ledger.peek();
          if (isFirst && state !== undefined) wasKnown = state.cluster.learningUntil > 0;
        }
        const { capacity, depth, learningDepth } = fleet.limits;
        if (capacity === 0) return;
        const most = ((wasKnown ? 1 : 2) * depth + learningDepth) / 1e6;
        expect(mostBeyond(fleet.admissions, capacity)).toBeLessThanOrEqual(most + 1e-6);
      }),
      { numRuns: 150 },
    );
  });

  it("a step of the store's clock admits at most B more if forward, and nothing if back", () => {
    const steps = fc.record({ scene: anyScene(all), at: fc.nat({ max: 20 }), byMs: stepMs });
    fc.assert(
      fc.property(steps, ({ scene: { given, history }, at, byMs }) => {
        const fleet = new QuotaFleet(given).run(history.slice(0, at));
        fleet.storeOffsetMicros = byMs * 1000;
        fleet.run(history.slice(at));
        const { admissions, limits } = fleet;
        if (limits.capacity > 0) {
          const most = ((byMs > 0 ? 2 : 1) * limits.depth) / 1e6;
          expect(mostBeyond(admissions, limits.capacity)).toBeLessThanOrEqual(most + 1e-6);
        }
        for (const [index, { burst, ceilingDepth }] of limits.apps.entries()) {
          const own = admissions.filter(({ app }) => app === index);
          const most = ((byMs > 0 ? 2 : 1) * ceilingDepth) / 1e6;
          expect(mostBeyond(own, burst)).toBeLessThanOrEqual(most + 1e-6);
        }
      }),
      { numRuns: 150 },
    );
  });
});

const stepMs = fc.integer({ min: -60_000, max: 60_000 });

describe("the store's clock", () => {
  it('stands still while it is behind, and tokens flow again from where it was', () => {
    const ledger = new QuotaLedger(compileQuota(GIVEN));
    const have = (seq: number, ms: number): number => {
      const reply = ledger.settle(START_MICROS + ms * 1000, ask({ count: 100_000 }, { seq }));
      expect(reply.nowMicros).toBe(START_MICROS + Math.max(0, ms) * 1000);
      return reply.apps[0]!.needs[0]!;
    };
    expect([have(1, 0), have(2, -1000), have(3, -1), have(4, 0), have(5, 10)]).toEqual([
      DEPTH,
      0,
      0,
      0,
      100,
    ]);
  });

  it.each([-1001, -5000, -3_600_000])(
    'goes on from where it was after a step of %i ms: tokens flow at once',
    (stepMs) => {
      const ledger = new QuotaLedger(compileQuota(GIVEN));
      const have = (seq: number, ms: number): number => {
        const asked = ask({ count: 100_000 }, { seq, seenEpoch: Math.min(1, seq - 1) });
        return ledger.settle(START_MICROS + ms * 1000, asked).apps[0]!.needs[0]!;
      };
      expect([have(1, 0), have(2, stepMs), have(3, stepMs + 10), have(4, stepMs + 1010)]).toEqual([
        DEPTH,
        0,
        100,
        DEPTH,
      ]);
      expect(ledger.peek()!.cluster.epoch).toBe(1);
      expect(ledger.status().asOfMs).toBe(START_MICROS / 1000 + stepMs + 1010);
    },
  );

  it('that steps back ends no lease early, and none late', () => {
    const ledger = new QuotaLedger(compileQuota(GIVEN));
    const call = (node: string, seq: number, ms: number): void => {
      ledger.settle(START_MICROS + ms * 1000, ask({ want: seq === 1 ? 50 : 0 }, { node, seq }));
    };
    const outstanding = (): number => ledger.peek()!.cluster.outstanding / 1e6;
    call('gone', 1, 0);
    call('b', 1, 500);
    call('b', 2, -60_000);
    call('b', 3, -59_501);
    expect(outstanding()).toBe(100);
    call('b', 4, -59_500);
    expect(outstanding()).toBe(50);
  });

  it('that was ahead for a while and is right again leaves nobody with a lease that has ended', () => {
    const ledger = new QuotaLedger(compileQuota(GIVEN));
    const settle = (node: string, seq: number, ms: number): number => {
      const call = ask({ want: seq === 1 ? 50 : 0 }, { node, seq });
      return ledger.settle(START_MICROS + ms * 1000, call).nowMicros;
    };
    const leasedUntil = settle('a', 1, 0) + 1_000_000;
    settle('b', 1, 3_600_000);
    expect(ledger.peek()!.cluster.outstanding).toBe(50e6);
    // On the right clock it is not even a second later; but the ledger has ended the lease.
    expect(settle('a', 2, 500)).toBeGreaterThanOrEqual(leasedUntil);
  });

  it('may count fractions of a microsecond; grants are whole all the same', () => {
    const ledger = new QuotaLedger(compileQuota(GIVEN));
    for (let seq = 1; seq <= 200; seq++) {
      const at = 1234.567 + seq * 12_345.678;
      const reply = ledger.settle(at, ask({ count: 200, want: 150, returned: 150 }, { seq }));
      expect(Number.isInteger(reply.apps[0]!.granted)).toBe(true);
      expect(Number.isInteger(ledger.peek()!.cluster.level)).toBe(true);
    }
  });
});
