import { defer, of, throwError } from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { Metadata } from '@grpc/grpc-js';
import {
  isRateLimitError,
  isUnavailableError,
  retryAfter,
  retryAfterMsOf,
  RetryBudget,
} from 'nestjs-weir';
import { type RejectionBody } from '../../lib/requests/rejections.js';
import { rejectionStatus } from '../../lib/transports/grpc/grpc-status.js';

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

/** The error as a client of gRPC gets it. */
const onGrpc = (body: object) =>
  rejectionStatus(body as RejectionBody, Metadata, { domain: 'shop', deadline: Infinity });

describe('an error of gRPC', () => {
  it('is known as a denial, an overload, or what protection turned away', () => {
    const overload = { ...denial(5), statusCode: 503, code: 'OVERLOADED' };
    expect([onGrpc(denial(5)), onGrpc(overload), onGrpc(open)].map(isRateLimitError)).toEqual([
      true,
      true,
      false,
    ]);
    expect([onGrpc(denial(5)), onGrpc(open)].map(isUnavailableError)).toEqual([false, true]);
  });

  it('tells when to come back', () => {
    expect(retryAfterMsOf(onGrpc(denial(1234.5)))).toBe(1235);
    expect(retryAfterMsOf(onGrpc(open))).toBeUndefined();
    expect(retryAfterMsOf(denial(7))).toBe(7);
    scheduler().run(({ expectObservable }) => {
      const { answer } = service(onGrpc(denial(40)));
      expectObservable(answer.pipe(retryAfter({ jitter: 0 }))).toBe('40ms (a|)');
    });
  });

  it('of another service is none of ours, whatever it carries', () => {
    const details = new Metadata();
    for (const bytes of [[], [0x1a], [0x1a, 0x7f, 1], [0xff, 0xff], [0x1a, 2, 0x0a, 9]]) {
      details.set('grpc-status-details-bin', Buffer.from(bytes));
      const error = { code: 8, details: 'too large', metadata: details };
      expect([isRateLimitError(error), retryAfterMsOf(error)]).toEqual([false, undefined]);
    }
    expect(isRateLimitError({ code: 8, metadata: new Metadata() })).toBe(false);
    expect(isRateLimitError({ code: 8 })).toBe(false);
  });
});

describe('a retry budget', () => {
  /** Requests at one instant, each denied once; how many were sent again. */
  const sentAgain = (budget: RetryBudget | number, requests: number): number => {
    let again = 0;
    scheduler().run(({ flush }) => {
      const retried = retryAfter<string>({ budget, jitter: 0 });
      for (let i = 0; i < requests; i++) {
        const { answer, calls } = service(denial(10));
        answer.pipe(retried).subscribe({
          next: () => (again += calls() - 1),
          error: (error: unknown) => expect(error).toEqual(denial(10)),
        });
      }
      flush();
    });
    return again;
  };

  it('lets a tenth of the requests of 10 s be sent again, and one a second', () => {
    expect(sentAgain(0.1, 1000)).toBe(110);
    expect(sentAgain(0, 1000)).toBe(10);
    expect(sentAgain(1, 50)).toBe(50);
  });

  it('is shared by all that are given it, and counts what it did not cover', () => {
    const budget = new RetryBudget();
    expect([sentAgain(budget, 100), sentAgain(budget, 100)]).toEqual([20, 10]);
    expect(budget.exhausted).toBe(170);
  });

  it('is whole again after 10 s', () => {
    const budget = new RetryBudget(0.1);
    const use = (nowMs: number): number => {
      let retries = 0;
      for (let i = 0; i < 100; i++) {
        budget.request(nowMs);
        if (budget.tryRetry(nowMs)) retries++;
      }
      return retries;
    };
    expect([use(0), use(5000), use(15_000)]).toEqual([20, 10, 20]);
  });

  it.each([-0.1, 1.1, NaN, '10%', null])('is refused with the part %p', (budget) => {
    expect(() => retryAfter({ budget: budget as never })).toThrow('budget: expected a part');
  });
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
