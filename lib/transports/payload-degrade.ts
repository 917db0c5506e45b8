import { type ExecutionContext } from '@nestjs/common';
import { type AnswerFacts } from '../interceptors/index.js';

/** What an answer of HTTP would be: there is nothing else to say of one that came back. */
const FINE: AnswerFacts = { status: 200, setCookie: false, cacheControl: undefined };

/** What calls and messages have in common: a payload, and no method or status that says more. */
export abstract class PayloadDegrade {
  /** Neither a method's name nor a pattern tells whether its handler only reads. */
  isRead(): boolean {
    return false;
  }

  questionOf(context: ExecutionContext): string {
    return this.bodyOf(context) ?? '';
  }

  bodyOf(context: ExecutionContext): string | undefined {
    return JSON.stringify(context.getArgByIndex(0));
  }

  factsOf(): AnswerFacts {
    return FINE;
  }
}
