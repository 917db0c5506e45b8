import { type ExecutionContext } from '@nestjs/common';
import {
  type AnswerFacts,
  type Asked,
  type DegradeMark,
} from '../../degradation/degrade-transport.js';
import { CALL } from '../../limits/route-place.js';

/** What an answer of HTTP would be: there is nothing else to say of one that came back. */
const FINE: AnswerFacts = {
  ...{ status: 200, setCookie: false },
  ...{ cacheControl: undefined, vary: undefined, contentType: undefined },
};

/** What calls and messages have in common: a payload, and no method or status that says more. */
export abstract class PayloadDegrade {
  /** Neither a method's name nor a pattern tells whether its handler only reads. */
  isRead(): boolean {
    return false;
  }

  questionOf(context: ExecutionContext): string {
    return JSON.stringify(context.getArgByIndex(0)) ?? '';
  }

  askedOf(context: ExecutionContext): Asked {
    const body: unknown = context.getArgByIndex(0);
    return { verb: CALL, place: this.placeOf(context), params: undefined, query: undefined, body };
  }

  factsOf(): AnswerFacts {
    return FINE;
  }

  /** The method or pattern that was called. */
  protected abstract placeOf(context: ExecutionContext): string | undefined;
}

/** What an answer says of itself in a header or trailer, which take ASCII alone. */
export function markText({ level, reason, notice }: Omit<DegradeMark, 'ageMs' | 'ttlMs'>): string {
  const text = `level=${level}; reason=${reason}`;
  return notice === undefined ? text : `${text}; notice*=UTF-8''${extended(notice)}`;
}

/** As RFC 8187 has it, which escapes a little more than JavaScript does. */
function extended(text: string): string {
  const escape = (one: string): string => `%${one.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(text.toWellFormed()).replace(/['()*]/g, escape);
}
