import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { chargeOf } from '../guards/charges.js';
import { subjectOf } from '../guards/subject.js';
import { wordlessDecisionOf } from '../guards/wordless-messages.js';
import { type Decision } from '../limiter/decision.js';

/** A parameter of a handler: what was decided for this request. Undefined if it was not limited. */
export const RateLimitDecision: () => ParameterDecorator = createParamDecorator(
  (_data: unknown, context: ExecutionContext): Decision | undefined =>
    chargeOf(subjectOf(context))?.decision ?? wordlessDecisionOf(context),
);
