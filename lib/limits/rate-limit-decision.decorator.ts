import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { chargeOf } from './charges.js';
import { subjectOf } from '../requests/subject.js';
import { wordlessDecisionOf } from './wordless-messages.js';
import { type Decision } from '../limiter/decision.js';

/** A parameter of a handler: what was decided for this request. Undefined if it was not limited. */
export const RateLimitDecision: () => ParameterDecorator = createParamDecorator(
  (_data: unknown, context: ExecutionContext): Decision | undefined =>
    chargeOf(subjectOf(context))?.decision ?? wordlessDecisionOf(context),
);
