/** A response of fetch, supertest or Fastify's `inject`. */
export type LimitedResponse =
  | {
      readonly status: number;
      readonly headers: { get(name: string): string | null };
      readonly bodyUsed?: boolean;
      clone(): { text(): Promise<string> };
    }
  | { readonly status: number; readonly headers: HeaderRecord; readonly text?: string }
  | { readonly statusCode: number; readonly headers: HeaderRecord; readonly payload: string };

/** Headers as a plain object. */
export type HeaderRecord = Readonly<Record<string, unknown>>;

/** The expected figures of a denial; a field that is left out may be anything. */
export interface RateLimitExpectation {
  /** The policy, or the app whose quota, denied. */
  readonly policy?: string;
  /** Exactly so long until the same request would pass. */
  readonly retryAfterMs?: number;
}

/** For the types of your test runner: docs/testing.md says how. */
export interface RateLimitMatchers<R = Promise<void>> {
  /** The response says that a limit was reached: 429, or 503 for the capacity of the service. */
  toBeRateLimited(expected?: RateLimitExpectation): R;
}

/** The outcome of a matcher, as `expect.extend` takes it. */
export interface MatcherVerdict {
  pass: boolean;
  message: () => string;
}

/**
 * Matchers for `expect.extend` of Jest and Vitest. They read the body, so they have to be awaited:
 * `await expect(response).toBeRateLimited({ policy: 'login' })`.
 */
export const rateLimitMatchers = {
  async toBeRateLimited(
    received: unknown,
    expected: RateLimitExpectation = {},
  ): Promise<MatcherVerdict> {
    const denial = await denialOf(received as LimitedResponse);
    const faults = faultsOf(denial, expected);
    const pass = faults.length === 0;
    return {
      pass,
      message: () =>
        pass
          ? `expected the response not to be rate limited${wordsOf(expected)}`
          : `expected the response to be rate limited${wordsOf(expected)}, but ${faults.join(' and ')}`,
    };
  },
};

interface DeniedResponse {
  readonly status: number;
  readonly isLimited: boolean;
  readonly policies: readonly string[];
  readonly retryAfterMs: number | undefined;
}

async function denialOf(response: LimitedResponse): Promise<DeniedResponse> {
  const status = 'statusCode' in response ? response.statusCode : response?.status;
  if (typeof status !== 'number') {
    throw new TypeError(
      'toBeRateLimited: expected a response with a status, of fetch, supertest or inject',
    );
  }
  const body = parse(await textOf(response));
  const policies = Array.isArray(body['violated-policies']) ? body['violated-policies'] : [];
  const seconds = headerOf(response, 'retry-after');
  const told = typeof body.retryAfterMs === 'number' ? body.retryAfterMs : undefined;
  return {
    status,
    isLimited: status === 429 || (status === 503 && body.code === 'OVERLOADED'),
    policies: policies as string[],
    // Answers in words of their own have only the header.
    retryAfterMs: told ?? (seconds === undefined ? undefined : Number(seconds) * 1000),
  };
}

function faultsOf(
  denial: DeniedResponse,
  { policy, retryAfterMs }: RateLimitExpectation,
): string[] {
  if (!denial.isLimited) return [`its status is ${denial.status}`];
  const faults: string[] = [];
  if (policy !== undefined && !denial.policies.includes(policy)) {
    faults.push(`it was denied by ${denial.policies.join(', ') || 'no policy that it names'}`);
  }
  if (retryAfterMs !== undefined && denial.retryAfterMs !== retryAfterMs) {
    faults.push(`it says to come back after ${denial.retryAfterMs ?? 'no'} ms`);
  }
  return faults;
}

function wordsOf({ policy, retryAfterMs }: RateLimitExpectation): string {
  const by = policy === undefined ? '' : ` by '${policy}'`;
  return retryAfterMs === undefined ? by : `${by} for ${retryAfterMs} ms`;
}

async function textOf(response: LimitedResponse): Promise<string> {
  // A body that the test has read already is gone: the status and the headers are left.
  if ('clone' in response) return response.bodyUsed ? '' : response.clone().text();
  return ('payload' in response ? response.payload : response.text) ?? '';
}

function headerOf({ headers }: LimitedResponse, name: string): string | undefined {
  const value = isHeaders(headers) ? headers.get(name) : headers[name];
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

function isHeaders(headers: Pick<Headers, 'get'> | HeaderRecord): headers is Pick<Headers, 'get'> {
  return typeof headers.get === 'function';
}

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
