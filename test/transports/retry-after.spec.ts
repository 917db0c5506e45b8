import { defer, of, throwError } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { isRateLimitError, isUnavailableError, retryAfter } from 'nestjs-weir';

const denial = (retryAfterMs: number) => ({
  status: 'error',
  statusCode: 429,
  code: 'RATE_LIMITED',
  message: 'Too many requests',
  retryAfterMs,
});

const open = { status: 'error', statusCode: 503, code: 'BREAKER_OPEN', message: 'Not now' };

/** Fails with the errors in turn, then answers. */
function service(...errors: unknown[]) {
  let calls = 0;
  const answer = defer(() => {
    const error = errors[calls++];
    return error === undefined ? of('a') : throwError(() => error);
  });
  return { answer, calls: () => calls };
}

const scheduler = () => new TestScheduler((actual, expected) => expect(actual).toEqual(expected));

describe('retryAfter', () => {
  it('asks again after the time that the service has named', () => {
    scheduler().run(({ expectObservable }) => {
      const { answer } = service(denial(40), denial(60));
      expectObservable(answer.pipe(retryAfter({ jitter: 0 }))).toBe('100ms (a|)');
    });
  });

  it('spreads callers by at most a fifth of it', () => {
    const { random } = Math;
    Math.random = () => 0.5;
    try {
      scheduler().run(({ expectObservable }) => {
        expectObservable(service(denial(100)).answer.pipe(retryAfter())).toBe('110ms (a|)');
      });
    } finally {
      Math.random = random;
    }
  });

  it('gives up after so many times, with the last error', () => {
    scheduler().run(({ expectObservable, flush }) => {
      const { answer, calls } = service(denial(10), denial(10), denial(30));
      const retried = answer.pipe(retryAfter({ retries: 2, jitter: 0 }));
      expectObservable(retried).toBe('20ms #', undefined, denial(30));
      flush();
      expect(calls()).toBe(3);
    });
  });

  it('does not wait for longer than it may', () => {
    scheduler().run(({ expectObservable }) => {
      const { answer } = service(denial(30_001));
      expectObservable(answer.pipe(retryAfter())).toBe('#', undefined, denial(30_001));
    });
  });

  it('does the same for what protection has turned away, if a time was named', () => {
    scheduler().run(({ expectObservable }) => {
      const { answer } = service({ ...open, retryAfterMs: 70 });
      expectObservable(answer.pipe(retryAfter({ jitter: 0 }))).toBe('70ms (a|)');
      expectObservable(service(open).answer.pipe(retryAfter())).toBe('#', undefined, open);
    });
  });

  it('passes other errors on at once', () => {
    scheduler().run(({ expectObservable }) => {
      const error = { status: 'error', message: 'Internal server error' };
      expectObservable(service(error).answer.pipe(retryAfter())).toBe('#', undefined, error);
    });
  });

  it.each<[object]>([[{ retries: -1 }], [{ jitter: 2 }], [{ maxWait: 'long' }], [{ retires: 1 }]])(
    'refuses %j',
    (options) => {
      expect(() => retryAfter(options)).toThrow(Object.keys(options)[0]);
    },
  );
});

describe('isRateLimitError', () => {
  it('knows denials and overload', () => {
    expect(isRateLimitError(denial(1))).toBe(true);
    expect(isRateLimitError({ ...denial(1), code: 'OVERLOADED' })).toBe(true);
  });

  it.each([[undefined], [null], ['RATE_LIMITED'], [new Error('x')], [{ code: 'RATE_LIMITED' }]])(
    'does not take %p for one',
    (error) => {
      expect(isRateLimitError(error)).toBe(false);
    },
  );
});

describe('isUnavailableError', () => {
  it('knows what was turned away, with and without a time', () => {
    expect(isUnavailableError(open)).toBe(true);
    expect(isUnavailableError({ ...open, retryAfterMs: 5 })).toBe(true);
    expect(isUnavailableError({ ...open, statusCode: 504, code: 'DEADLINE_EXCEEDED' })).toBe(true);
  });

  it.each([
    [undefined],
    ['BREAKER_OPEN'],
    [denial(1)],
    [{ code: 'BREAKER_OPEN' }],
    [{ ...open, retryAfterMs: 'soon' }],
    [{ ...open, code: 'BIG_VALUE' }],
  ])('does not take %p for one', (error) => {
    expect(isUnavailableError(error)).toBe(false);
  });
});
