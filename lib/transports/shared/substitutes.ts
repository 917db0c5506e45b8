import { type ExecutionContext } from '@nestjs/common';
import { CALL } from '../../limits/route-place.js';
import { type AnswerFacts, type Asked } from '../../degradation/degrade-transport.js';

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
