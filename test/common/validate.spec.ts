import {
  oneOf,
  plainObject,
  rejectUnknown,
  wholeAbove0,
  withoutUndefined,
} from '../../lib/common/validate.js';
import { errorWith, refusal, unknownOption } from '../support/errors.js';

describe('validation', () => {
  it.each([1, 2, 1e12])('takes %p as a whole number above 0', (value) => {
    expect(() => wholeAbove0('f', value)).not.toThrow();
  });

  it.each([0, -1, 1.5, NaN, Infinity, 1e12 + 1, '5', 5n, null, undefined, [5], {}])(
    'refuses %p as a whole number above 0',
    (value) => {
      expect(() => wholeAbove0('f', value)).toThrow(refusal('f', value));
    },
  );

  it('holds whole numbers to a bound of the caller, and names it', () => {
    expect(() => wholeAbove0('f', 10, 10)).not.toThrow();
    expect(() => wholeAbove0('f', 11, 10)).toThrow('f: expected a whole number from 1 to 10');
  });

  it('takes one of the choices, and lists them to who has none', () => {
    expect(() => oneOf('f', 'b', ['a', 'b'])).not.toThrow();
    expect(() => oneOf('f', 'c', ['a', 'b'])).toThrow(refusal('f', 'c'));
    expect(() => oneOf('f', 'c', ['a', 'b'])).toThrow("one of 'a', 'b'");
    expect(() => oneOf('f', undefined, ['a', 'b'])).toThrow(refusal('f', undefined));
    expect(() => oneOf('f', ['a'], ['a', 'b'])).toThrow(refusal('f', ['a']));
  });

  it('refuses options it does not know by their full path, and lists those it knows', () => {
    expect(() => rejectUnknown('store', { maxKeys: 1 }, ['maxKeys'])).not.toThrow();
    const misspelt = () => rejectUnknown('store', { type: 'x', maxkeys: 1 }, ['maxKeys', 'type']);
    expect(misspelt).toThrow(unknownOption('store.maxkeys'));
    expect(misspelt).toThrow(/^store\.maxkeys: .*maxKeys, type$/);
  });

  it('keeps the value of an unknown option to itself, since it may be a secret', () => {
    const told = () => rejectUnknown('store', { pasword: 'hunter2' }, ['password']);
    expect(told).toThrow(unknownOption('store.pasword'));
    expect(told).not.toThrow(/hunter2/);
    expect(told).toThrow(errorWith({ stack: expect.not.stringContaining('hunter2') as string }));
  });

  it('refuses an option that does not exist even if it is undefined', () => {
    expect(() => rejectUnknown('f', { brust: undefined }, ['burst'])).toThrow(
      unknownOption('f.brust'),
    );
  });

  it('does not take what every object inherits for an option', () => {
    const input = JSON.parse('{"constructor": 1}') as object;
    expect(() => rejectUnknown('f', input, ['rate'])).toThrow(unknownOption('f.constructor'));
  });

  it('takes an object for an object, and nothing else', () => {
    expect(() => plainObject('f', {}, 'an object')).not.toThrow();
    expect(() => plainObject('f', Object.create(null), 'an object')).not.toThrow();
    for (const value of [null, undefined, 5, 'text', true, [], [{}], () => {}]) {
      expect(() => plainObject('f', value, 'an object')).toThrow(refusal('f', value));
    }
    expect(() => plainObject('f', 5, 'an object of things')).toThrow(
      'f: expected an object of things, got 5',
    );
  });

  it('reads an undefined option as one that was not given, and keeps null, 0 and false', () => {
    expect(withoutUndefined({ a: undefined, b: null, c: 0, d: false })).toEqual({
      b: null,
      c: 0,
      d: false,
    });
  });
});
