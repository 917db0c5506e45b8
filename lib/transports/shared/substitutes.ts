import { HttpException, type ArgumentsHost, type ExecutionContext } from '@nestjs/common';
import { written } from '../../degradation/core/degrade-key.js';
import { CALL } from '../../limits/route-place.js';
import { type UnansweredBody } from '../../requests/rejections.js';
import {
  type AnswerFacts,
  type HeaderNames,
  type RequestIdentity,
  type RequestParts,
  type SubstituteMark,
  type Substitutes,
} from '../../requests/transport.js';

/** The facts of an answer that came back, in terms of HTTP. */
const FINE: AnswerFacts = {
  status: 200,
  setCookie: false,
  cacheControl: undefined,
  vary: undefined,
  contentType: undefined,
};

/** Calls and messages alike: a payload, and no verb or status. */
export abstract class PayloadSubstitutes implements Substitutes {
  /** Neither a method's name nor a pattern tells whether its handler only reads. */
  isRead(): boolean {
    return false;
  }

  fingerprintOf(context: ExecutionContext): string {
    return payloadText(context.getArgByIndex(0));
  }

  identityOf(context: ExecutionContext): RequestIdentity {
    const body: unknown = context.getArgByIndex(0);
    return { verb: CALL, place: this.placeOf(context), params: undefined, query: undefined, body };
  }

  partsOf(context: ExecutionContext): RequestParts {
    const body: unknown = context.getArgByIndex(0);
    return { request: this.callOf(context), params: undefined, query: undefined, body };
  }

  factsOf(): AnswerFacts {
    return FINE;
  }

  abstract takes(host: ArgumentsHost): boolean;
  abstract hasCredentials(context: ExecutionContext, known: HeaderNames): boolean;
  abstract trustedUserOf(context: ExecutionContext): unknown;
  abstract varyingHeaderOf(context: ExecutionContext, name: string): string | undefined;
  abstract isAborted(context: ExecutionContext): boolean;
  abstract isFailure(error: unknown): boolean;
  abstract mark(context: ExecutionContext, mark: SubstituteMark): void;
  abstract answerWithout(body: UnansweredBody, host: ArgumentsHost): unknown;
  /** The call of gRPC, the context of a message. */
  protected abstract callOf(context: ExecutionContext): object;
  /** The method or pattern that was called. */
  protected abstract placeOf(context: ExecutionContext): string | undefined;
}

/** The most values that are looked at; JSON itself refuses a payload without an end. */
const MOST_LOOKED_AT = 100_000;

/** The payload as text, equal for equal payloads. JSON is quick, but writes bytes as numbers: 4 MB of them take 0.4 s, measured. */
export function payloadText(payload: unknown): string {
  return hasBytes(payload) ? written(payload) : (JSON.stringify(payload) ?? '');
}

function hasBytes(payload: unknown): boolean {
  const open: unknown[] = [payload];
  for (let looked = 0; open.length > 0 && looked < MOST_LOOKED_AT; looked++) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null) continue;
    if (value instanceof Uint8Array) return true;
    for (const name in value) open.push((value as Record<string, unknown>)[name]);
  }
  return false;
}

/** The first status that is the server's own fault. */
const SERVER_ERROR = 500;

/** A caller's mistake says nothing about the service. Anything else that is thrown does. */
export function isServerFault(error: unknown): boolean {
  return error instanceof HttpException ? error.getStatus() >= SERVER_ERROR : true;
}

/** The mark of a substitute in a header or trailer, which take ASCII alone. */
export function markText({
  level,
  reason,
  notice,
}: Omit<SubstituteMark, 'ageMs' | 'ttlMs'>): string {
  const text = `level=${level}; reason=${reason}`;
  return notice === undefined ? text : `${text}; notice*=UTF-8''${extended(notice)}`;
}

/** Encodes a text by RFC 8187, which escapes a little more than JavaScript does. */
function extended(text: string): string {
  const escape = (one: string): string => `%${one.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(text.toWellFormed()).replace(/['()*]/g, escape);
}
