import { type ExecutionContext } from '@nestjs/common';
import { foreignType, foreignVary, mayStore } from './core/cacheability.js';
import { type AnswerStore, type FallbackLevels } from './core/contract.js';
import { type AnswerKeys } from './answer-keys.js';
import { type AnswerFacts, type DegradeTransport } from './degrade-transport.js';
import { DueAnswers } from './due-answers.js';

export interface RouteAnswersParts {
  readonly caches: Pick<AnswerStore, 'isDue' | 'store'>;
  /** Told of a route with an answer that the caches do not take. */
  readonly refused: (route: string, why?: RefusalCause) => void;
}

/** What of an answer its copy would be without. */
export interface RefusalCause {
  /** The unknown header that it varies by. */
  readonly vary?: string;
  /** The type that its handler has set. */
  readonly type?: string;
}

/** Questions of a route that are remembered to have been looked at lately. */
const MOST_QUESTIONS = 10_000;
/** How often the caches are asked whether they want the answer to a question anew. */
const LOOK_EVERY_MICROS = 1_000_000;

/** Fills the caches with the answers of a route's handler. */
export class RouteAnswers {
  private readonly due = new DueAnswers(MOST_QUESTIONS);
  private readonly isKept: boolean;

  constructor(
    private readonly route: string,
    private readonly keys: AnswerKeys,
    private readonly levels: FallbackLevels,
    private readonly parts: RouteAnswersParts,
  ) {
    this.isKept = levels.shared !== false || levels.process !== false;
  }

  /** Whether the answer to a request is worth a look. Nothing is put into a key or into JSON for it. */
  isDue(context: ExecutionContext, transport: DegradeTransport, nowMicros: number): boolean {
    if (!this.isKept) return false;
    const question = this.keys.questionOf(context, transport);
    if (question === undefined) return false;
    return this.due.isDue(question, nowMicros, LOOK_EVERY_MICROS);
  }

  keep(
    value: unknown,
    facts: AnswerFacts,
    context: ExecutionContext,
    transport: DegradeTransport,
  ): void {
    const { caches, refused } = this.parts;
    if (value === undefined || !mayStore(facts)) return;
    const vary = foreignVary(facts, this.keys.vary);
    if (vary !== undefined) return refused(this.route, { vary });
    const type = foreignType(facts, value);
    if (type !== undefined) return refused(this.route, { type });
    const key = this.keys.keyOf(context, transport);
    if (key === undefined || !caches.isDue(this.levels, key)) return;
    if (!caches.store(this.levels, key, value)) refused(this.route);
  }
}
