import { type ExecutionContext } from '@nestjs/common';
import { type Decision } from '../limiter/decision.js';
import { partOfMessage } from '../requests/subject.js';

/**
 * WebSocket messages with nothing but a word or a number, and no callback, bring no object along that
 * could stand for them. Guards and interceptors still share a list of arguments, but parameters of a
 * handler are read from a copy. For them it is the last message that this client got through to this
 * handler; with several on their way at once that may be a later one than their own.
 */
const lastDecisions = new WeakMap<object, WeakMap<object, Decision>>();

export function keepWordlessDecision(context: ExecutionContext, decision: Decision): void {
  if (!decision.allowed || partOfMessage(context.getArgs()) !== undefined) return;
  const client = context.getArgByIndex<object>(0);
  let decisions = lastDecisions.get(client);
  if (decisions === undefined) lastDecisions.set(client, (decisions = new WeakMap()));
  decisions.set(context.getHandler(), decision);
}

export function wordlessDecisionOf(context: ExecutionContext): Decision | undefined {
  if (context.getType<string>() !== 'ws') return undefined;
  if (partOfMessage(context.getArgs()) !== undefined) return undefined;
  return lastDecisions.get(context.getArgByIndex<object>(0))?.get(context.getHandler());
}
