import {
  AcquireTimeoutError,
  CostExceedsLimitError,
  InvalidArgumentError,
  LimiterClosedError,
  MissingPackageError,
  RateLimitError,
  RestartNeededError,
  StoreTimeoutError,
  StoreUnavailableError,
  StrayReplyError,
  TooManyWaitersError,
  UnknownOptionError,
  UnknownPolicyError,
} from 'nestjs-weir';
import fc from 'fast-check';
import { withoutSecrets } from '../../lib/common/errors.js';

describe('an error of this library', () => {
  const errors: [RateLimitError, name: string, code: string, message: RegExp][] = [
    [
      new InvalidArgumentError('rate', -1, 'a number above 0'),
      'InvalidArgumentError',
      'INVALID_ARGUMENT',
      /^rate: expected a number above 0, got -1$/,
    ],
    [
      new UnknownOptionError('store.ulr', ['url', 'type']),
      'UnknownOptionError',
      'UNKNOWN_OPTION',
      /^store\.ulr: no such option; did you mean 'url'\? expected one of url, type$/,
    ],
    [
      new CostExceedsLimitError('login', 6, 5),
      'CostExceedsLimitError',
      'COST_EXCEEDS_LIMIT',
      /^cost: expected at most 5, .* policy "login" ever holds; raise its burst, or lower the cost, got 6$/,
    ],
    [
      new UnknownPolicyError('logn', ['login', 'search']),
      'UnknownPolicyError',
      'UNKNOWN_POLICY',
      /^unknown policy "logn"; did you mean 'login'\? the limiter has "login", "search"$/,
    ],
    [
      new RestartNeededError('quota.clusterId', 'other', '"main"'),
      'RestartNeededError',
      'RESTART_NEEDED',
      /^quota\.clusterId: expected "main", as at the start: .* restart, got "other"$/,
    ],
    [
      new AcquireTimeoutError('login', 50, 100),
      'AcquireTimeoutError',
      'ACQUIRE_TIMEOUT',
      /"login".*50 ms.*100 ms/,
    ],
    [
      new TooManyWaitersError('login', 1000),
      'TooManyWaitersError',
      'TOO_MANY_WAITERS',
      /"login".*1000/,
    ],
    [new LimiterClosedError(), 'LimiterClosedError', 'LIMITER_CLOSED', /closed/],
    [
      new StoreUnavailableError('refused'),
      'StoreUnavailableError',
      'STORE_UNAVAILABLE',
      /^store unavailable: refused$/,
    ],
    [new StoreTimeoutError(20), 'StoreTimeoutError', 'STORE_TIMEOUT', /20 ms/],
    [
      new StrayReplyError('lease', true),
      'StrayReplyError',
      'STORE_STRAY_REPLY',
      /reply to lease answers another call.*opened anew/,
    ],
    [
      new StrayReplyError('lease', false),
      'StrayReplyError',
      'STORE_STRAY_REPLY',
      /store\.client.*disconnect\(true\)/,
    ],
    [
      new MissingPackageError('ioredis', 'the redis store'),
      'MissingPackageError',
      'MISSING_PACKAGE',
      /npm install ioredis/,
    ],
  ];

  it.each(errors)('%p has its name and code, and says what to do', (error, name, code, message) => {
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({ name, code });
    expect(error.message).toMatch(message);
    expect(error.stack).toContain(name);
  });

  it('carries what it is about', () => {
    expect(new InvalidArgumentError('rate', -1, 'x')).toMatchObject({ field: 'rate', value: -1 });
    expect(new CostExceedsLimitError('p', 6, 5)).toMatchObject({
      field: 'cost',
      value: 6,
      policy: 'p',
      limit: 5,
    });
    expect(new UnknownOptionError('f', ['g'])).toMatchObject({ field: 'f', value: undefined });
    expect(new UnknownPolicyError('x', [])).toMatchObject({ field: 'policy', value: 'x' });
    expect(new UnknownPolicyError('x', [])).not.toHaveProperty('policy');
    expect(new AcquireTimeoutError('p', 50, 100)).toMatchObject({
      policy: 'p',
      timeoutMs: 50,
      retryAfterMs: 100,
    });
    expect(new TooManyWaitersError('p', 7)).toMatchObject({ policy: 'p', maxWaiters: 7 });
    expect(new StoreTimeoutError(20)).toMatchObject({ timeoutMs: 20 });
  });

  it('can be caught by its general kind', () => {
    expect(new CostExceedsLimitError('p', 6, 5)).toBeInstanceOf(InvalidArgumentError);
    expect(new UnknownOptionError('f', [])).toBeInstanceOf(InvalidArgumentError);
    expect(new UnknownPolicyError('x', [])).toBeInstanceOf(InvalidArgumentError);
    expect(new StoreTimeoutError(20)).toBeInstanceOf(StoreUnavailableError);
  });

  it('keeps its cause', () => {
    const cause = new Error('ECONNREFUSED');
    expect(new StoreUnavailableError('refused', { cause }).cause).toBe(cause);
    expect(new MissingPackageError('ioredis', 'redis', { cause }).cause).toBe(cause);
  });

  it('says so when there is no policy at all', () => {
    expect(new UnknownPolicyError('x', []).message).toContain('(none)');
  });
});

describe('a value in a message', () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;

  it.each([
    ['', '""'],
    ['a"b', '"a\\"b"'],
    [null, 'null'],
    [NaN, 'NaN'],
    [new Date(NaN), 'Invalid Date'],
    [10n, '10'],
    [Symbol('s'), 'Symbol(s)'],
    [[1, 2], '[1,2]'],
    [{ rate: 1 }, '{"rate":1}'],
    [{ big: 1n }, '[object Object]'],
    [circular, '[object Object]'],
    [Object.create(null), '{}'],
    [function limit() {}, 'function limit'],
    [{ toJSON: () => undefined }, '[object Object]'],
  ])('%p is told as %s', (value: unknown, told) => {
    expect(new InvalidArgumentError('f', value, 'x').message).toBe(`f: expected x, got ${told}`);
  });

  it('that is missing is not told', () => {
    expect(new InvalidArgumentError('f', undefined, 'x').message).toBe('f: expected x');
  });

  it('is cut short if it is long', () => {
    const { message } = new InvalidArgumentError('f', 'x'.repeat(10_000), 'a short text');
    expect(message.length).toBeLessThan(150);
    expect(message).toMatch(/…$/);
  });

  it.each<[unknown, string]>([
    [{ password: 'hunter2' }, '{"password":"…"}'],
    [{ password: 24_681_357 }, '{"password":"…"}'],
    [{ sentinelPassword: ['hunter2'] }, '{"sentinelPassword":"…"}'],
    [{ tls: { passphrase: 'hunter2' } }, '{"tls":{"passphrase":"…"}}'],
    [{ password: Buffer.from('hunter2') }, '{"password":"…"}'],
    [{ secretKey: 'hunter2', access_key: 'x' }, '{"secretKey":"…","access_key":"…"}'],
    [{ token: null, secret: false }, '{"token":null,"secret":false}'],
    ['redis://h/?sentinelPassword=hunter2&db=1', '"redis://h/?sentinelPassword=…&db=1"'],
    ['REDIS_PASSWORD=hunter2', '"REDIS_PASSWORD=…"'],
  ])('has no secret in it: %j', (value, told) => {
    expect(new InvalidArgumentError('f', value, 'x').message).toBe(`f: expected x, got ${told}`);
  });

  it('steers no terminal, as a text and in others', () => {
    const { message } = new InvalidArgumentError('f', 'a\u009b2J\u202e\u2028', 'x');
    expect(message).toBe('f: expected x, got "a\\u009b2J\\u202e\\u2028"');
    expect(new InvalidArgumentError('f', { 'a\u009b': 1 }, 'x').message).toContain('a\\u009b');
  });

  it('has no password of an address in it, found in linear time', () => {
    const signs = fc.constantFrom('/', '//', '@', ':', ' ', '\n', 'a', 'redis');
    fc.assert(
      fc.property(fc.array(signs, { maxLength: 30 }), (parts) => {
        const text = parts.join('');
        const known = text.replace(/\/\/\S*@/g, '//');
        // The other two patterns have nothing to do where no colon follows `redis`.
        fc.pre(!/redis:/.test(known));
        expect(withoutSecrets(text)).toBe(known);
      }),
    );
    const begun = process.cpuUsage();
    withoutSecrets('/'.repeat(1_000_000));
    expect(process.cpuUsage(begun).user / 1000).toBeLessThan(500);
  });
});
