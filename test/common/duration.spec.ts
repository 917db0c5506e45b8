import fc from 'fast-check';
import { durationMs, parseRate } from '../../lib/common/duration.js';
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
  ])('%p is refused', (text) => {
    expect(() => parseRate(text, 'policies.p.rate')).toThrow(
      errorWith({ code: 'INVALID_ARGUMENT', field: 'policies.p.rate' }),
    );
  });
});
