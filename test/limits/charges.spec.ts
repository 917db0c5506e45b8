import { chargeOf, keepCharge, type Charge } from '../../lib/limits/charges.js';

const charge = (name: string): Charge => ({
  decision: undefined,
  asked: { policy: name, key: 'k' },
  ledger: undefined,
  pending: undefined,
  startedAt: 0,
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
