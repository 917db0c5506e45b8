import fc from 'fast-check';
import { durationMs, durationOf, parseRate, rateOf } from '../../lib/common/duration.js';
import { DURATION_PATTERN } from '../../lib/common/schema-fields.js';
import { InvalidArgumentError } from 'nestjs-weir';
import { errorWith, refusal } from '../support/errors.js';

const YEAR_MS = 365 * 86_400_000;

describe('a duration', () => {
  it.each([
    [250, 250],
    [1, 1],
    [1.5, 1.5],
    ['ms', 1],
    ['250ms', 250],
    ['60s', 60_000],
    ['1.5s', 1500],
    ['0.001s', 1],
    ['5m', 300_000],
    ['1h', 3_600_000],
    ['1d', 86_400_000],
    ['s', 1000],
    ['2 minutes', 120_000],
    ['  10 Sec ', 10_000],
    ['3hours', 10_800_000],
    [YEAR_MS, YEAR_MS],
    ['365d', YEAR_MS],
  ])('%p is %d ms', (value, ms) => {
    expect(durationMs(value, 'f')).toBe(ms);
  });

  it.each([
    0,
    -1,
    0.5,
    0.999,
    Number.MIN_VALUE,
    NaN,
    Infinity,
    YEAR_MS + 1,
    '',
    ' ',
    '0s',
    '0.5ms',
    '0.0009s',
    '-5s',
    '100',
    '1e3s',
    '.5s',
    '1,5s',
    '5 parsecs',
    '5s5s',
    '1h30m',
    '366d',
    'constructor',
    '5mss',
    '5ss',
    'hs',
    '3ds',
    '2 minutess',
    null,
    undefined,
    true,
    [5],
    {},
  ])('%p is refused', (value) => {
    expect(() => durationMs(value, 'store.idleTimeout')).toThrow(
      refusal('store.idleTimeout', value),
    );
  });

  it('says how to write one when it refuses', () => {
    expect(() => durationMs('soon', 'period')).toThrow(
      /^period: expected a duration from 1 ms to 365 days.*'250ms', '60s'.*got "soon"$/,
    );
  });

  it('property: a number and a unit read as their product', () => {
    const units = fc.constantFrom(['ms', 1], ['s', 1000], ['m', 60_000], ['h', 3_600_000]);
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8000 }), units, (count, [unit, ms]) => {
        expect(durationMs(`${count}${unit}`, 'f')).toBe(count * Number(ms));
      }),
    );
  });

  it('property: any text gives a duration from 1 ms to 365 days or a typed error', () => {
    const numbers = fc.oneof(fc.integer({ min: 0 }), fc.double({ min: 0, max: 1e5, noNaN: true }));
    const units = fc.constantFrom('ms', 's', 'min', 'hours', 'd', 'parsec');
    const likely = fc.tuple(numbers, units).map(([count, unit]) => `${count}${unit}`);
    fc.assert(
      fc.property(fc.oneof(fc.string(), likely), (text) => {
        let ms: number;
        try {
          ms = durationMs(text, 'f');
        } catch (error) {
          expect(error).toBeInstanceOf(InvalidArgumentError);
          return;
        }
        expect(ms).toBeGreaterThanOrEqual(1);
        expect(ms).toBeLessThanOrEqual(YEAR_MS);
      }),
    );
  });
});

/** Every way to write a unit; words have a plural, letters have not. */
const UNITS = new Map([
  ['ms', 1],
  ...['s', 'sec', 'secs', 'second', 'seconds'].map((unit) => [unit, 1000] as const),
  ...['m', 'min', 'mins', 'minute', 'minutes'].map((unit) => [unit, 60_000] as const),
  ...['h', 'hour', 'hours'].map((unit) => [unit, 3_600_000] as const),
  ...['d', 'day', 'days'].map((unit) => [unit, 86_400_000] as const),
]);

describe('what is written as a duration', () => {
  const numbers = fc.oneof(
    fc.constantFrom('', '0', '1', '1.5', '007', '.5', '5.', '-1', '+1', '1e3', '0x1', '1_000', '٣'),
    fc.nat({ max: 1000 }).map(String),
  );
  const blanks = fc.constantFrom('', ' ', '  ', '\t');
  const letters = fc.constantFrom(...UNITS.keys(), ...'msechdinutory', 'S', 'M', 'D', '/', '.');
  const units = fc.oneof(
    fc.constantFrom(...UNITS.keys()),
    fc.constantFrom(...UNITS.keys()).map((unit) => `${unit}s`),
    fc.array(letters, { maxLength: 3 }).map((some) => some.join('')),
  );
  const likely = fc.tuple(blanks, numbers, blanks, units, blanks);

  it('property: is a plain number or none, and a unit, and nothing else', () => {
    fc.assert(
      fc.property(likely, ([before, number, gap, unit, after]) => {
        const isForm = /^$|^[0-9]+([.][0-9]+)?$/.test(number);
        const ms = Number(number === '' ? 1 : number) * (UNITS.get(unit.toLowerCase()) ?? NaN);
        const isRight = isForm && ms >= 1 && ms <= YEAR_MS;
        const text = before + number + gap + unit + after;
        if (isRight) expect(durationMs(text, 'f')).toBe(ms);
        else expect(() => durationMs(text, 'f')).toThrow(InvalidArgumentError);
      }),
      { numRuns: 2000 },
    );
  });

  it('property: is what editors are told, but for its range, its case and blanks around it', () => {
    const pattern = new RegExp(DURATION_PATTERN);
    fc.assert(
      fc.property(likely, ([, number, gap, unit]) => {
        const isForm = /^$|^[0-9]+([.][0-9]+)?$/.test(number) && UNITS.has(unit);
        const isUnitAlone = number === '' && gap !== '';
        if (!isUnitAlone) expect(pattern.test(number + gap + unit)).toBe(isForm);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('a rate text', () => {
  it.each([
    ['100/s', 100, 1000],
    ['100/min', 100, 60_000],
    ['1000/5m', 1000, 300_000],
    ['0.5/s', 0.5, 1000],
    [' 20 / 250 ms ', 20, 250],
    ['7/day', 7, 86_400_000],
  ])('%p is %d per %d ms', (text, rate, periodMs) => {
    expect(parseRate(text, 'f')).toEqual({ rate, periodMs });
  });

  it.each([
    '',
    '/',
    '100',
    '/s',
    ' /s',
    '100/',
    '100/0s',
    '100/0.5ms',
    '100/366d',
    'ten/s',
    '1,000/s',
    '1/2/s',
    'NaN/s',
    'Infinity/s',
    '100/parsec',
    '100 per second',
    '1e3/s',
    '0x10/s',
    '+5/s',
    '.5/s',
    '5/mss',
  ])('%p is refused', (text) => {
    expect(() => parseRate(text, 'policies.p.rate')).toThrow(
      errorWith({ code: 'INVALID_ARGUMENT', field: 'policies.p.rate' }),
    );
  });
});

describe('a text that only the run time knows', () => {
  it('is a rate or a duration as it stands, if it is one', () => {
    expect([rateOf('100/min'), durationOf('2 minutes')]).toEqual(['100/min', '2 minutes']);
  });

  it.each(['100', '10 per minute', '10/fortnight', ''])('is no rate if it is %p', (text) => {
    expect(() => rateOf(text)).toThrow(refusal('rate', text));
  });

  it.each(['soon', '2 months', ''])('is no duration if it is %p', (text) => {
    expect(() => durationOf(text)).toThrow(refusal('duration', text));
  });
});
