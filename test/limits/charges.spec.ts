import { type Decision } from '../../lib/limiter/decision.js';
import { chargeOf, keepCharge, Ledger, type Charge } from '../../lib/limits/charges.js';

const charge = (name: string): Charge => ({
  decision: undefined,
  asked: { policy: name, key: 'k' },
  call: undefined,
  ledger: undefined,
  pending: undefined,
});

describe('a charge', () => {
  it.each([
    ['a list of headers', ['host', 'x']],
    ['an object', {}],
    ['an object that nothing can be put on', Object.freeze({})],
    ['an object without a prototype', Object.create(null) as object],
  ])('is kept with %s, and the last one counts', (_, subject) => {
    expect(chargeOf(subject)).toBeUndefined();
    keepCharge(subject, charge('a'));
    expect(chargeOf(subject)).toEqual(charge('a'));
    keepCharge(subject, charge('b'));
    expect(chargeOf(subject)).toEqual(charge('b'));
    expect(chargeOf({})).toBeUndefined();
    expect(Object.keys(subject)).not.toContain('weir:charge');
  });
});

describe('a ledger', () => {
  const [first, second] = [{ field: 'a' }, { field: 'b' }];
  const costOf = (): number => 1;
  const allowed = { allowed: true, policy: 'default', tier: 'policy' } as Decision;
  const asked = { policy: 'default', key: 'k' };

  it('gives back what guards of one call have paid, once', () => {
    const ledger = new Ledger();
    ledger.note(first, asked, allowed, costOf);
    ledger.note(first, { ...asked, policy: 'other' }, allowed, costOf);
    ledger.enter(first);
    expect(ledger.giveBack(costOf).map((one) => one.asked)).toMatchObject([
      { policy: 'default' },
      { policy: 'other' },
    ]);
    expect(ledger.paidFor(asked)).toBe(0);
    expect(ledger.giveBack(costOf)).toEqual([]);
  });

  it('keeps what another field of the operation relies on', () => {
    const ledger = new Ledger();
    ledger.note(first, asked, allowed, costOf);
    // The other field finds the limit paid, and runs.
    ledger.enter(second);
    ledger.enter(first);
    expect(ledger.giveBack(costOf)).toEqual([]);
    expect(ledger.paidFor(asked)).toBe(1);
  });
});
