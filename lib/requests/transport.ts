import { type ArgumentsHost, type ExecutionContext } from '@nestjs/common';
import { type Decision } from '../limiter/decision.js';
import { type LimitInfo } from '../limiter/rate-limiter.js';
import { type RequestCounts } from './request-counts.js';
import { type TierRequest } from './tier.js';
import {
  type RateLimitedException,
  type RefusedBody,
  type RefusedException,
  type UnansweredBody,
  type UnavailableBody,
} from './rejections.js';

/** The protocols that requests come by. The list stands where users read it: it is part of the public API. */
export type TransportName = TierRequest['transport'];

/** One protocol: how its requests are read, and how its callers are answered. */
export interface Transport extends RequestReader, DecisionWriter {
  readonly counts: RequestCounts;
  /** For requests that can be answered in the place of their handler; undefined where none can. */
  readonly substitutes?: Substitutes;
}

/** The transport of a context. */
export abstract class Transports {
  abstract of(host: ArgumentsHost): Transport;
  /** Undefined for contexts that are not known here. */
  abstract find(host: ArgumentsHost): Transport | undefined;
  /** Counts of the requests that came by each of them. */
  abstract counts(): ReadonlyMap<TransportName, RequestCounts>;
}

/** The values that a key, a tier or a cost may depend on, under the same names on every transport. */
export interface RequestReader {
  /** The peer's address, as far as proxies are trusted; undefined where there is none. */
  addressOf(context: ExecutionContext): string | undefined;
  headerOf(context: ExecutionContext, name: string): string | undefined;
  /** The caller, as the application knows it. */
  userOf(context: ExecutionContext): unknown;
  /** A value of the request by path: `params.id`, `query.q`, `body.sku`. */
  valueAt(context: ExecutionContext, path: readonly string[]): unknown;
  /**
   * The value that a message carries at an index: of a list its elements, and anything else is the first. Only of
   * transports whose messages may be lists.
   */
  elementAt?(context: ExecutionContext, index: number): unknown;
  /** The HTTP verb, the gRPC method, the message pattern. */
  methodOf(context: ExecutionContext): string;
  /** The request as the module's `tier` sees it. */
  rawRequestOf(context: ExecutionContext): TierRequest;
}

/** How callers learn of a decision. */
export interface DecisionWriter {
  /** Headers of an answer that goes on; nothing where there are none. */
  decided(context: ExecutionContext, decision: Decision, route: RouteFacts): void;
  /** The error of a request that asks for the impossible. */
  badRequest(context: ExecutionContext, body: RefusedBody, route: RouteFacts): Error;
  /** The error of a denied request. */
  rejection(context: ExecutionContext, decision: Decision, route: RouteFacts): RateLimitedException;
  /** Answers a denied or a bad request; an exception filter returns the result. */
  answer(exception: RateLimitedException | RefusedException, host: ArgumentsHost): unknown;
  /** Answers a request that protection did not let through; `error` is not for callers to see. */
  turnAway(body: UnavailableBody, host: ArgumentsHost, error: Error): unknown;
  /** Calls back if the caller goes away; the result stops listening. */
  whenAborted(context: ExecutionContext, callback: () => void): () => void;
  /** Calls back when the last byte of the answer was handed over; of transports that can tell. */
  whenFinished?(context: ExecutionContext, callback: (answer: FinishedAnswer) => void): void;
  /** True for requests that no server has put in line. */
  entersLine?(context: ExecutionContext): boolean;
  /** The caller has gone; of transports that can tell without being asked to listen. */
  isGone?(context: ExecutionContext): boolean;
  /** A wrapper around the decision on this request; undefined if it needs none. */
  around?(context: ExecutionContext): Around | undefined;
  /** Answers a request whose guard failed. Only of transports that throw a GuardFailure. */
  answerFailure?(cause: unknown, host: ArgumentsHost): unknown;
  /** Nobody waits for an answer, so the application's own rejection would reach no one. */
  isOneWay?(context: ExecutionContext): boolean;
  /**
   * For requests that are better kept waiting for tokens than denied, but no longer than that, also by a
   * shaper. `isLimitShared` if no caller has tokens of its own.
   */
  waitPolicyOf?(context: ExecutionContext, isLimitShared: boolean): WaitPolicy | undefined;
}

/** How requests are answered in the place of their handler. */
export interface Substitutes {
  /** False for a request that only its handler can answer: a stream, or a message without a reply. */
  takes(host: ArgumentsHost): boolean;
  /** False for a request that changes something, unless the route says otherwise. */
  isRead(context: ExecutionContext): boolean;
  hasCredentials(context: ExecutionContext, known: HeaderNames): boolean;
  /** The caller; nothing that callers may put into a payload. */
  trustedUserOf(context: ExecutionContext): unknown;
  /** A header that an answer depends on, as the framework understands it. */
  varyingHeaderOf(context: ExecutionContext, name: string): string | undefined;
  /** The same text for the same request. It is made for each request, so it has to be cheap. */
  fingerprintOf(context: ExecutionContext): string;
  /** Everything that tells the answer from others. Throws if a part of it is out of sight. */
  identityOf(context: ExecutionContext): RequestIdentity;
  partsOf(context: ExecutionContext): RequestParts;
  factsOf(context: ExecutionContext): AnswerFacts;
  /** The caller has gone, so the handler's result says nothing of the resource. */
  isAborted(context: ExecutionContext): boolean;
  /** False for errors that are the caller's own doing. */
  isFailure(error: unknown): boolean;
  mark(context: ExecutionContext, mark: SubstituteMark): void;
  /** Answers a request that nothing can stand in for; an exception filter returns the result. */
  answerWithout(body: UnansweredBody, host: ArgumentsHost): unknown;
}

/** The mark of a substitute, for its caller to see. */
export interface SubstituteMark {
  readonly level: 1 | 2 | 3 | 4;
  readonly reason: string;
  readonly ageMs: number;
  readonly ttlMs: number;
  /** A text for people. */
  readonly notice?: string;
}

/** The parts of a request that its answer depends on. */
export interface RequestParts {
  readonly request: unknown;
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

/** The parts of a request that tell its answer from others. */
export interface RequestIdentity {
  /** HTTP's, or one for all calls. */
  readonly verb: string;
  /** The path or pattern under which the handler was found; undefined if it is not known. */
  readonly place: string | undefined;
  readonly params: Readonly<Record<string, unknown>> | undefined;
  readonly query: Readonly<Record<string, unknown>> | undefined;
  /** Undefined if nothing was sent along. */
  readonly body: unknown;
}

/** An answer before it is sent, as far as caches care. */
export interface AnswerFacts {
  readonly status: number;
  readonly setCookie: boolean;
  readonly cacheControl: string | undefined;
  readonly vary: string | undefined;
  /** Set by the handler, so that another answer would be taken for something else. */
  readonly contentType: string | undefined;
}

/** An answer that was sent. */
export interface FinishedAnswer {
  readonly status: number;
  /** A stream of events, which ends when its viewer leaves. */
  readonly isEventStream: boolean;
}

/** Names of headers, in whatever case they come. */
export interface HeaderNames {
  has(name: string): boolean;
}

/** How long a request may be kept waiting, and how its connection is kept alive meanwhile. */
export interface WaitPolicy {
  readonly maxWaitMs: number;
  /** Called about once a second. */
  keepAlive(): void;
  /** Called before it waits, and after that. */
  begin(): void;
  end(): void;
}

/** Runs the decision, and gives its answer or its error. */
export type Around = (decide: () => boolean | Promise<boolean>) => boolean | Promise<boolean>;

/** The facts about the limits of a route that a transport may show to a caller. */
export interface RouteFacts {
  /** `Class.method`. */
  readonly id: string;
  /** The name of a policy for callers. */
  nameOf(policy: string): string;
  /** The figures of a policy, for the tier that a decision was made for. */
  limitOf(policy: string, capacity: number): LimitInfo | undefined;
}

/** Thrown by readers: the caller has hung up, and the value went with the connection. */
export class CallerGone extends Error {
  constructor() {
    super('the caller is gone');
  }
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
