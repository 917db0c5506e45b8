import { namedKey, namedKeys } from '../../lib/limits/named-key.js';

describe('the key of a caller whom an operator names', () => {
  it('is the one that the guard makes for such a caller', () => {
    expect(namedKey('user', ['ada'])).toBe('user:ada');
    expect(namedKey('user', ['user:ada'])).toBe('user:ada');
    expect(namedKey('ip', ['203.0.113.7'])).toBe('203.0.113.7');
    expect(namedKey('ip', ['2001:db8:1:2:3::4'])).toBe('2001:db8:1:2::/64');
    expect(namedKey('ip', ['2001:db8:1:2::/64'])).toBe('2001:db8:1:2::/64');
    expect(namedKey({ header: 'x-api-key' }, ['k 1'])).toBe('k 1');
  });

  it('is that of a caller without a name, of one who is named by an address', () => {
    expect(namedKey('user', ['203.0.113.7'])).toBe('anonymous:203.0.113.7');
    expect(namedKey('user', ['2001:db8:1:2:3::4'])).toBe('anonymous:2001:db8:1:2::/64');
    expect(namedKey('user', ['anonymous:203.0.113.7'])).toBe('anonymous:203.0.113.7');
    expect(namedKey('user', ['user:203.0.113.7'])).toBe('user:203.0.113.7');
    expect(namedKey('user', ['1.2.3'])).toBe('user:1.2.3');
    expect(namedKey('user', ['acme:7'])).toBe('user:acme:7');
  });

  it('may also be that of a user whose name is an address', () => {
    expect(namedKeys('user', ['203.0.113.7'], 48)).toEqual([
      ...['anonymous:203.0.113.7', 'user:203.0.113.7'],
    ]);
    expect(namedKeys(['ip', 'user'], ['203.0.113.7', '2001:db8:1::7'], 48)).toEqual([
      '11:203.0.113.7;25:anonymous:2001:db8:1::/48;',
      '11:203.0.113.7;18:user:2001:db8:1::7;',
    ]);
    expect(namedKeys('user', ['ada'])).toEqual(['user:ada']);
    expect(namedKeys('ip', ['203.0.113.7'])).toEqual(['203.0.113.7']);
    expect(namedKeys('user', ['user:203.0.113.7'])).toEqual(['user:203.0.113.7']);
    expect(namedKeys('user', ['ada', 'b'])).toEqual([]);
  });

  it('is the only one that there is, where all callers have the same', () => {
    expect(namedKey('global', ['ada'])).toBe('global');
  });

  it('is the text itself where only the code knows how keys are made', () => {
    expect(namedKey(undefined, ['tenant-7'])).toBe('tenant-7');
    expect(namedKey(undefined, ['tenant:7'])).toBe('tenant:7');
  });

  it('has as many parts as the policy, and is none with another number of words', () => {
    expect(namedKey(['user', 'ip'], ['ada', '203.0.113.7'])).toBe('8:user:ada;11:203.0.113.7;');
    expect(namedKey(['user'], ['ada'])).toBe('8:user:ada;');
    expect(namedKey(['user', 'ip'], ['ada'])).toBeUndefined();
    expect(namedKey('user', ['ada', 'b'])).toBeUndefined();
    expect(namedKey('user', [''])).toBeUndefined();
  });
});
