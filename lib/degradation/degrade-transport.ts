import { type ArgumentsHost, type ExecutionContext } from '@nestjs/common';
import { type DegradeLevel, type DegradeReason } from './core/contract.js';
import { type CredentialHeaders } from './credential-headers.js';
import { type DegradedException } from './degraded.exception.js';

/** What an answer is, for whoever gets it. */
export interface DegradeMark {
  readonly level: DegradeLevel;
  readonly reason: DegradeReason;
  readonly ageMs: number;
  readonly ttlMs: number;
  /** What people are to be told of it. */
  readonly notice?: string;
}

/** The parts of a request that its answer depends on. */
export interface RequestParts {
  readonly request: unknown;
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

/** What a caller has asked, as far as it tells one answer from another. */
export interface Asked {
  /** HTTP's, or one for all calls. */
  readonly verb: string;
  /** The path or pattern under which the handler was found; undefined if nobody knows. */
  readonly place: string | undefined;
  readonly params: Readonly<Record<string, unknown>> | undefined;
  readonly query: Readonly<Record<string, unknown>> | undefined;
  /** What was sent along; undefined if nothing was. */
  readonly body: unknown;
}

/** What an answer looks like before it is sent, as far as caches care. */
export interface AnswerFacts {
  readonly status: number;
  readonly setCookie: boolean;
  readonly cacheControl: string | undefined;
  readonly vary: string | undefined;
  /** Set by the handler, so that another answer would be taken for something else. */
  readonly contentType: string | undefined;
}

/** How requests of a transport are answered in the place of their handler. */
export interface DegradeTransport {
  /** False for what changes something, unless the route says otherwise. */
  isRead(context: ExecutionContext): boolean;
  hasCredentials(context: ExecutionContext, known: CredentialHeaders): boolean;
  /** Nothing that callers may put into a payload. */
  userOf(context: ExecutionContext): unknown;
  headerOf(context: ExecutionContext, name: string): string | undefined;
  /** The same text for the same question. It is asked for each time, so it has to be cheap. */
  questionOf(context: ExecutionContext): string;
  /** All of the question. Throws if a part of it is out of sight. */
  askedOf(context: ExecutionContext): Asked;
  partsOf(context: ExecutionContext): RequestParts;
  factsOf(context: ExecutionContext): AnswerFacts;
  /** The caller has gone, so what the handler said tells nothing. */
  isAborted(context: ExecutionContext): boolean;
  /** False for errors that are the caller's own doing. */
  isFailure(error: unknown): boolean;
  mark(context: ExecutionContext, mark: DegradeMark): void;
  /** What an exception filter returns for a request without an answer. */
  answer(exception: DegradedException, host: ArgumentsHost): unknown;
}

/** The transport of a request, if it can be answered in the place of its handler. */
export abstract class DegradeTransports {
  abstract of(host: ArgumentsHost): DegradeTransport | undefined;
}
