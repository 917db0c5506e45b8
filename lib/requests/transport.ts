import { type ArgumentsHost, type ExecutionContext } from '@nestjs/common';
import { type Decision } from '../limiter/decision.js';
import { type LimitInfo } from '../limiter/rate-limiter.js';
import {
  type RateLimitedException,
  type RefusedBody,
  type RefusedException,
  type UnavailableBody,
} from './rejections.js';

/** Thrown by readers: whoever sent the request has hung up, and what is asked for went with the connection. */
export class CallerGone extends Error {
  constructor() {
    super('the caller is gone');
  }
}

/** What a key, a tier or a cost may depend on; the same words on every transport. */
export interface RequestReader {
  /** The peer's address, as far as proxies are trusted; undefined where there is none. */
  addressOf(context: ExecutionContext): string | undefined;
  headerOf(context: ExecutionContext, name: string): string | undefined;
  /** Whoever the application says has sent the request. */
  userOf(context: ExecutionContext): unknown;
  /** A value of the request by path: `params.id`, `query.q`, `body.sku`. */
  valueAt(context: ExecutionContext, path: readonly string[]): unknown;
  /**
   * What a message carries at a place: of a list its elements, and anything else is the first. Only of
   * transports whose messages may be lists.
   */
  placeAt?(context: ExecutionContext, place: number): unknown;
  /** What is called: the HTTP verb, the gRPC method, the message pattern. */
  methodOf(context: ExecutionContext): string;
}

/** How a transport tells what was decided. */
export interface DecisionWriter {
  /** Headers of an answer that goes on; nothing where there are none. */
  decided(context: ExecutionContext, decision: Decision, route: RouteFacts): void;
  /** The error that a request ends with which asks for what cannot be. */
  refusal(context: ExecutionContext, body: RefusedBody, route: RouteFacts): Error;
  /** The error that a denied request ends with. */
  rejection(context: ExecutionContext, decision: Decision, route: RouteFacts): RateLimitedException;
  /** Answers a denied or refused request; what it returns is what an exception filter returns. */
  answer(exception: RateLimitedException | RefusedException, host: ArgumentsHost): unknown;
  /** Answers a request that protection did not let through; `error` is not for callers to see. */
  turnAway(body: UnavailableBody, host: ArgumentsHost, error: Error): unknown;
  /** Calls back if the caller goes away; the result stops listening. */
  whenAborted(context: ExecutionContext, callback: () => void): () => void;
  /** What has to be done around the decision on this request; undefined if nothing. */
  around?(context: ExecutionContext): Around | undefined;
  /** Answers a request whose guard failed. Only of transports that throw a GuardFailure. */
  answerFailure?(cause: unknown, host: ArgumentsHost): unknown;
  /** Nobody waits for an answer, so a policy's own words for a rejection would reach no one. */
  isOneWay?(context: ExecutionContext): boolean;
  /** An interceptor of this transport can answer in the place of the handler. */
  takesHandOver?(context: ExecutionContext): boolean;
  /**
   * For requests that are better kept waiting for tokens than denied, but no longer than that, also by a
   * shaper. `isLimitShared` if no caller has tokens of its own.
   */
  patienceOf?(context: ExecutionContext, isLimitShared: boolean): Patience | undefined;
}

/** How long a request may be kept waiting, and what keeps its connection alive meanwhile. */
export interface Patience {
  readonly maxWaitMs: number;
  /** Called about once a second. */
  keepAlive(): void;
  /** Called before it waits, and after that. */
  begin(): void;
  end(): void;
}

/** Runs what decides, and gives its answer or its error. */
export type Around = (decide: () => boolean | Promise<boolean>) => boolean | Promise<boolean>;

export type Transport = RequestReader & DecisionWriter;

/** The transport of a context. */
export abstract class Transports {
  abstract of(host: ArgumentsHost): Transport;
  /** Undefined for contexts that are not known here. */
  abstract find(host: ArgumentsHost): Transport | undefined;
}

/** What a transport may tell a caller about the limits of a route. */
export interface RouteFacts {
  /** `Class.method`. */
  readonly id: string;
  /** What callers are told that a policy is called. */
  nameOf(policy: string): string;
  /** The figures of a policy, for the tier that a decision was made for. */
  limitOf(policy: string, capacity: number): LimitInfo | undefined;
}

/**
 * Something else than a denial went wrong in the guard, on a transport where Nest would not survive
 * the plain error: the filter that is bound with the guard answers for it.
 */
export class GuardFailure extends Error {
  constructor(override readonly cause: unknown) {
    super('the rate limit could not be decided', { cause });
    this.name = 'GuardFailure';
  }
}
