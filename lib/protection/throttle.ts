import { TimeWindow } from '../common/outcome-window.js';
import { isStrayPromise } from '../common/promises.js';
import { DeadlineExceededError, ProtectionRejectedError } from './errors.js';

export interface ThrottleSettings {
  readonly ratio: number;
  readonly windowMicros: number;
  readonly minimumCalls: number;
  readonly most: number;
  readonly isRefusal: ((error: unknown) => boolean) | undefined;
}

/**
 * Holds calls back that the other side would only refuse: a refusal costs it work, too. Of the calls of the
 * window so many are held back as make those that it accepted `1 / ratio` of all that go out, so that it can
 * tell by itself when it has room again; some always go.
 *
 * A call counts when it is made, or a burst would be out before its first refusal is in; until it ends
 * otherwise it counts as accepted. There is no dice: a part of a call is carried until it is a whole one.
 */
export class Throttle {
  private readonly window: TimeWindow;
  private carry = 0;
  /** The wait that the latest refusal named. */
  retryAfterMs = 0;

  constructor(private readonly settings: ThrottleSettings) {
    this.window = new TimeWindow(settings.windowMicros);
  }

  /** The part of calls that is held back just now. */
  get part(): number {
    const { calls, failures } = this.window;
    const { ratio, minimumCalls, most } = this.settings;
    if (calls < minimumCalls) return 0;
    const accepted = Math.max(0, calls - failures);
    return Math.min(most, Math.max(0, (calls - ratio * accepted) / (calls + 1)));
  }

  get requests(): number {
    return this.window.calls;
  }

  /** Refused by the other side, or held back because of that. */
  get refused(): number {
    return this.window.failures;
  }

  /** Counts a call. False if it is held back. */
  admit(now: number): boolean {
    this.window.age(now);
    const { part } = this;
    this.carry = part === 0 ? 0 : this.carry + part;
    const isHeldBack = this.carry >= 1;
    if (isHeldBack) this.carry--;
    this.window.record(now, isHeldBack, false);
    return !isHeldBack;
  }

  /** A call has failed; it may be that it was refused. */
  failed(error: unknown, now: number): void {
    if (!isRefused(error, this.settings.isRefusal)) return;
    this.window.fail(now);
    this.retryAfterMs = waitNamedBy(error);
  }
}

function isRefused(error: unknown, isRefusal: ThrottleSettings['isRefusal']): boolean {
  try {
    if (isRefusal === undefined) return isRefusalByDefault(error);
    const verdict: unknown = isRefusal(error);
    return verdict === true && !isStrayPromise(verdict);
  } catch {
    return false;
  }
}

const HTTP_REFUSALS: readonly unknown[] = [429, 503];
/** RESOURCE_EXHAUSTED and UNAVAILABLE. */
const GRPC_REFUSALS: readonly unknown[] = [8, 14];
/** Of services that have this library, in an error body of messages, sockets and GraphQL. */
const CODES: readonly unknown[] = [
  ...['RATE_LIMITED', 'OVERLOADED', 'PROTECTION_REJECTED', 'BULKHEAD_REJECTED'],
  ...['BREAKER_OPEN', 'DEADLINE_EXCEEDED'],
];

/** As clients of HTTP, gRPC and messages tell it. */
function isRefusalByDefault(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  // Of another resource of this process: the other side has not been asked.
  if (error instanceof ProtectionRejectedError || error instanceof DeadlineExceededError)
    return false;
  const { status, statusCode, code, response } = error as ClientError;
  if (HTTP_REFUSALS.includes(statusCode) || HTTP_REFUSALS.includes(status)) return true;
  if (HTTP_REFUSALS.includes(response?.status) || HTTP_REFUSALS.includes(response?.statusCode)) {
    return true;
  }
  return GRPC_REFUSALS.includes(code) || (CODES.includes(code) && !(error instanceof Error));
}

/** Errors of fetch wrappers, axios, got, Nest, grpc-js, and bodies of messages. */
interface ClientError {
  readonly status?: unknown;
  readonly statusCode?: unknown;
  readonly code?: unknown;
  readonly retryAfterMs?: unknown;
  readonly response?: {
    readonly status?: unknown;
    readonly statusCode?: unknown;
    readonly headers?: unknown;
  };
  readonly metadata?: { get?: (name: string) => readonly unknown[] };
}

/** 0 if it named none. */
function waitNamedBy(error: unknown): number {
  try {
    const { retryAfterMs, response, metadata } = error as ClientError;
    const ofGrpc = metadata?.get?.('grpc-retry-pushback-ms')?.[0];
    return (
      waitOf(retryAfterMs) ?? waitOf(ofGrpc) ?? waitOf(retryAfterIn(response?.headers), 1000) ?? 0
    );
  } catch {
    return 0;
  }
}

function waitOf(value: unknown, unitMs = 1): number | undefined {
  const number = typeof value === 'string' ? Number.parseInt(value, 10) : value;
  const isWait = typeof number === 'number' && number >= 0 && Number.isFinite(number);
  return isWait ? Math.ceil(number * unitMs) : undefined;
}

function retryAfterIn(headers: unknown): unknown {
  if (typeof headers !== 'object' || headers === null) return undefined;
  const { get } = headers as { get?: unknown };
  if (typeof get === 'function') return (headers as Headers).get('retry-after');
  return (headers as Record<string, unknown>)['retry-after'];
}
