import fc from 'fast-check';
import { Bulkhead, type SlotWaiter } from '../../lib/protection/bulkhead.js';

class Caller implements SlotWaiter {
  queuedBefore: SlotWaiter | undefined;
  queuedAfter: SlotWaiter | undefined;
  queue: Bulkhead | undefined;
  state: 'new' | 'waiting' | 'in' | 'out' | 'gone' = 'new';

  constructor(
    readonly number: number,
    private readonly order: number[],
    private readonly failsAtOnce = false,
  ) {}

  come(to: Bulkhead): this {
    if (to.tryTake()) this.enter(to);
    else if (to.isFull) this.state = 'gone';
    else {
      this.state = 'waiting';
      to.join(this);
    }
    return this;
  }

  admitted(from: Bulkhead): void {
    this.enter(from);
  }

  end(bulkhead: Bulkhead): void {
    if (this.state !== 'in') return;
    this.state = 'out';
    bulkhead.release();
  }

  giveUp(bulkhead: Bulkhead): void {
    if (this.state !== 'waiting') return;
    this.state = 'gone';
    bulkhead.leave(this);
  }

  private enter(bulkhead: Bulkhead): void {
    this.state = 'in';
    this.order.push(this.number);
    if (this.failsAtOnce) this.end(bulkhead);
  }
}

const inState = (callers: readonly Caller[], state: Caller['state']): number =>
  callers.filter((one) => one.state === state).length;

describe('a bulkhead', () => {
  const step = fc.record({
    do: fc.constantFrom('come', 'come', 'end', 'giveUp', 'resize'),
    pick: fc.nat(100),
    failsAtOnce: fc.boolean(),
    size: fc.integer({ min: 1, max: 5 }),
  });

  it('is never above its size, loses no slot, and serves in order', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        let size = 3;
        const bulkhead = new Bulkhead(size, 6);
        const callers: Caller[] = [];
        const order: number[] = [];
        for (const { do: what, pick, failsAtOnce, size: newSize } of steps) {
          const before = bulkhead.inFlight;
          const someone = callers[pick % Math.max(1, callers.length)];
          if (what === 'come') {
            callers.push(new Caller(callers.length, order, failsAtOnce).come(bulkhead));
          } else if (what === 'end') someone?.end(bulkhead);
          else if (what === 'giveUp') someone?.giveUp(bulkhead);
          else bulkhead.resize((size = newSize), 6);
          expect(bulkhead.inFlight).toBeLessThanOrEqual(Math.max(size, before));
          expect(bulkhead.inFlight).toBe(inState(callers, 'in'));
          expect(bulkhead.waiting).toBe(inState(callers, 'waiting'));
          expect(bulkhead.waiting).toBeLessThanOrEqual(6);
          // No call waits beside a free slot.
          if (bulkhead.waiting > 0) expect(bulkhead.inFlight).toBeGreaterThanOrEqual(size);
        }
        expect(order).toEqual([...order].sort((a, b) => a - b));
        for (const one of callers) one.giveUp(bulkhead);
        for (const one of callers) one.end(bulkhead);
        expect([bulkhead.inFlight, bulkhead.waiting]).toEqual([0, 0]);
      }),
      { numRuns: 300 },
    );
  });

  it('does not grow the stack when a long line fails at once', () => {
    const bulkhead = new Bulkhead(1, 100_000);
    const order: number[] = [];
    const first = new Caller(0, order).come(bulkhead);
    for (let n = 1; n <= 50_000; n++) new Caller(n, order, true).come(bulkhead);
    first.end(bulkhead);
    expect(order.length).toBe(50_001);
    expect(bulkhead.inFlight).toBe(0);
  });
});
