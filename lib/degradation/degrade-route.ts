import { type ExecutionContext } from '@nestjs/common';
import { type Clock } from '../common/clock.js';
import { isStrayPromise } from '../common/promises.js';
import { type Decision } from '../limiter/decision.js';
import { statusOf } from '../requests/rejections.js';
import { type SubstituteMark, type Substitutes } from '../requests/transport.js';
import { type FallbackChain } from './core/fallback-chain.js';
import { type AnswerKeys } from './answer-keys.js';
import {
  type DegradeLevel,
  type DegradeReason,
  type FallbackAnswer,
  type FallbackLevels,
  type ResourceRecovery,
} from './core/contract.js';
import {
  DegradeMessage,
  type DegradeContext,
  type DegradeOptions,
  type WarmEntries,
  type WarmUpEntry,
} from './degrade-options.js';
import { DegradedException } from './degraded.exception.js';
import { type RouteAnswers } from './route-answers.js';
import { type CallDeadline, type RouteDeadlines } from './route-deadlines.js';

/** Why a request is not answered by its handler. */
export interface Trigger {
  readonly reason: DegradeReason;
  readonly error?: unknown;
  readonly decision?: Decision;
  /** The level that an operator wants to see. */
  readonly level?: DegradeLevel;
  /** Redis is what failed. */
  readonly storeIsAway?: boolean;
}

/** The answer in the place of the handler's. */
export interface Substitute {
  readonly value: unknown;
  readonly mark: SubstituteMark;
}

/** The source of the context for functions of levels 3 and 4. */
export interface FallbackSubject {
  readonly context: ExecutionContext;
  readonly transport: Substitutes;
  readonly decision: Decision | undefined;
}

/** The levels of a route, by their cause: `level3` may be another method for each. */
export interface RouteLevels {
  readonly usual: FallbackLevels;
  readonly limited: FallbackLevels;
  readonly failed: FallbackLevels;
  /** Caches alone. */
  readonly kept: FallbackLevels;
}

export interface DegradeRouteDeps {
  readonly id: string;
  readonly options: DegradeOptions;
  readonly recovery: ResourceRecovery;
  readonly fallbacks: FallbackChain;
  readonly levels: RouteLevels;
  readonly keys: AnswerKeys;
  readonly answers: RouteAnswers;
  /** Called for a question whose answer was put into the caches without a request. */
  readonly warmed: (question: WarmUpEntry) => void;
  readonly deadlines: RouteDeadlines;
  readonly clock: Clock;
  readonly hidden: (route: string, error: unknown) => void;
  /** The controller, outside of any request. */
  readonly controller: () => object | Promise<object>;
  /** True where `@Degrade` stands on the class and on the method: the inner one of the two answers. */
  readonly isBoundTwice: boolean;
}

/** The answers of one handler: its deadlines, levels and caches. */
export class DegradeRoute implements RouteDeadlines {
  readonly id: string;
  readonly recovery: ResourceRecovery;
  readonly clock: Clock;
  readonly answers: RouteAnswers;
  readonly isBoundTwice: boolean;
  /** Other ones after a change. A request that has begun goes on with what it began with. */
  reads: CallDeadline;
  writes: CallDeadline;

  constructor(private readonly deps: DegradeRouteDeps) {
    this.id = deps.id;
    this.recovery = deps.recovery;
    this.clock = deps.clock;
    this.answers = deps.answers;
    this.isBoundTwice = deps.isBoundTwice;
    this.reads = deps.deadlines.reads;
    this.writes = deps.deadlines.writes;
  }

  get options(): DegradeOptions {
    return this.deps.options;
  }

  get keys(): AnswerKeys {
    return this.deps.keys;
  }

  get levels(): FallbackLevels {
    return this.deps.levels.usual;
  }

  /** The caller does not see an error of the handler. */
  hide(error: unknown): void {
    this.deps.hidden(this.id, error);
  }

  /** The questions of `warm`: none where there is no such option. */
  async warmEntries(): Promise<WarmEntries> {
    const { options, controller } = this.deps;
    return (await options.warm?.((await controller()) as never)) ?? [];
  }

  /** The caches have an answer to it from now on. */
  warmed(question: WarmUpEntry): void {
    this.deps.warmed(question);
  }

  isRead(context: ExecutionContext, transport: Substitutes): boolean {
    return this.deps.options.idempotent ?? transport.isRead(context);
  }

  deadlineOf(context: ExecutionContext, transport: Substitutes): CallDeadline {
    return this.isRead(context, transport) ? this.reads : this.writes;
  }

  /** An operator has switched the fallbacks off. */
  get isOff(): boolean {
    const { recovery } = this;
    return recovery.phase === 'disabled' || recovery.stats().observing;
  }

  /** The level that an operator wants all to see. */
  get pinnedLevel(): DegradeLevel | undefined {
    const { recovery } = this;
    return recovery.phase === 'forced' ? recovery.stats().level : undefined;
  }

  isFailure(error: unknown, transport: Substitutes): boolean {
    const { isFailure } = this.deps.options;
    try {
      if (isFailure === undefined) return transport.isFailure(error);
      const said = isFailure(error);
      return isStrayPromise(said) ? true : said;
    } catch {
      // A function that fails has not judged the error harmless.
      return true;
    }
  }

  /**
   * The best answer still possible. Writes have none: a caller must not take one for a success. Rejects
   * if a function of level 4 has nothing but a message.
   */
  async substitute(
    context: ExecutionContext,
    transport: Substitutes,
    { reason, error, decision, level, storeIsAway }: Trigger,
    deadline: number,
  ): Promise<Substitute | undefined> {
    if (!this.isRead(context, transport)) return undefined;
    const { fallbacks, levels, keys } = this.deps;
    const subject: FallbackSubject = { context, transport, decision };
    const answer = await fallbacks.answer({
      levels: levelsFor(levels, reason, error),
      key: keys.keyOf(context, transport),
      reason,
      deadline,
      level,
      storeIsAway,
      error,
      context: subject,
    });
    if (answer === undefined) return undefined;
    if (answer.value instanceof DegradeMessage) {
      throw withoutAnswer(answer.value.text, { reason, error, decision });
    }
    const notice = this.noticeOf(answer.level);
    return { value: this.withField(answer, notice), mark: { ...answer, notice } };
  }

  /** The message of the route in the place of an answer; undefined if it has none. */
  messageFallback(
    context: ExecutionContext,
    transport: Substitutes,
    trigger: Trigger,
  ): DegradedException | undefined {
    const { options, fallbacks, levels } = this.deps;
    const { level4 } = options;
    const isRead = this.isRead(context, transport);
    if (level4 === undefined || (isRead && !(level4 instanceof DegradeMessage))) return undefined;
    const text = level4 instanceof DegradeMessage ? level4.text : level4;
    const message = typeof text === 'string' ? text : undefined;
    fallbacks.gaveMessage(trigger.reason, isRead, levels.usual.resource);
    return withoutAnswer(message, trigger);
  }

  private noticeOf(level: DegradeLevel): string | undefined {
    const { notice } = this.deps.options;
    return level === 2 ? notice?.level2 : level === 3 ? notice?.level3 : undefined;
  }

  private withField(
    { value, level, reason, ageMs }: FallbackAnswer,
    notice: string | undefined,
  ): unknown {
    const { field } = this.deps.options;
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    if (field === undefined || !isObject) return value;
    const told = notice === undefined ? undefined : { notice };
    return { ...value, [field]: { level, reason, ageMs: Math.round(ageMs), ...told } };
  }
}

function levelsFor(levels: RouteLevels, reason: DegradeReason, error: unknown): FallbackLevels {
  if (reason === 'limited') return levels.limited;
  if (reason === 'overload') return levels.kept;
  return error ? levels.failed : levels.usual;
}

/** A caller over its limit learns when to come back, as without `@Degrade`. */
function withoutAnswer(
  message: string | undefined,
  { reason, error, decision }: Trigger,
): DegradedException {
  const retryAfterMs = reason === 'limited' ? decision?.retryAfterMs : undefined;
  const status = decision === undefined ? 503 : statusOf(decision);
  return new DegradedException(reason, message, status, error, retryAfterMs);
}

/** The argument of a function of the application. */
export function degradeContext(
  { context, transport, decision }: FallbackSubject,
  level: DegradeLevel,
  reason: DegradeReason,
  error: unknown,
  remainingMs: number,
): DegradeContext {
  return {
    ...transport.partsOf(context),
    ...{ reason, error, decision, level, context, remainingMs },
  };
}
