import { type Clock } from '../../common/clock.js';
import { type AnswerCaches, type Cached } from './answer-caches.js';
import {
  LEVELS,
  REASONS,
  type DegradeLevel,
  type DegradeReason,
  type FallbackAnswer,
  type FallbackFunction,
  type FallbackLevels,
  type FallbackRequest,
} from './contract.js';
import { FallbackRunner, type FallbackFault } from './fallback-runner.js';
import { type DegradationSettings } from './options.js';
import { isPlainData } from './plain-data.js';

/** The runners of a route's functions. */
interface Runners {
  readonly three: FallbackRunner | undefined;
  readonly four: FallbackRunner | undefined;
}

/** A level that can hang leaves a part of the time to a function that may have to follow. */
const SHARE_OF_TIME = 0.8;
const REDUCED: readonly DegradeLevel[] = [3];

/**
 * From level to level until one has an answer: 1, 2, 3, 4, within one deadline for all of them.
 * A level that fails is followed by the next one; nothing is thrown further.
 */
export class FallbackChain {
  private readonly runners = new WeakMap<FallbackLevels, Runners>();
  private readonly counts = new FallbackCounts();
  /** Called for errors of levels, which callers never see. */
  onFault: (resource: string | undefined, level: DegradeLevel, error: unknown) => void = () => {};

  constructor(
    private figures: DegradationSettings,
    private readonly caches: AnswerCaches,
    private readonly clock: Clock,
  ) {}

  /** The best answer that there is by the deadline. Never rejects; undefined if there is none. */
  async answer(request: FallbackRequest): Promise<FallbackAnswer | undefined> {
    for (const level of LEVELS) {
      if (level < (request.level ?? 1)) continue;
      const found = await this.tryLevel(level, request);
      if (found === undefined) continue;
      this.counts.answered(level, request.reason, request.levels.resource);
      const { value, ageMs, ttlMs } = found;
      return { level, value, ageMs, ttlMs, stale: level === 2, reason: request.reason };
    }
    this.counts.unansweredFor(request.reason);
    return undefined;
  }

  /** The route had a message where no level had an answer. `wasAsked`: the levels were tried before. */
  gaveMessage(reason: DegradeReason, wasAsked: boolean, resource?: string): void {
    this.counts.gaveMessage(reason, wasAsked, resource);
  }

  /** Settings that were checked: the result puts them into force, and cannot fail. */
  prepare(figures: DegradationSettings): () => void {
    return () => (this.figures = figures);
  }

  stats(): FallbackStats {
    return this.counts.stats();
  }

  private async tryLevel(
    level: DegradeLevel,
    request: FallbackRequest,
  ): Promise<Cached | undefined> {
    try {
      const found = await this.lookUp(level, request);
      return found && { ...found, value: this.reduced(level, request.levels, found.value) };
    } catch (error) {
      this.onFault(request.levels.resource, level, error);
      this.counts.fault('threw');
      return undefined;
    }
  }

  private lookUp(
    level: DegradeLevel,
    request: FallbackRequest,
  ): Cached | undefined | Promise<Cached | undefined> {
    const { levels, key } = request;
    switch (level) {
      case 1:
        return this.sharedAnswer(request);
      case 2:
        return key === undefined ? undefined : this.caches.readProcess(levels, key);
      case 3:
        return this.made(3, request);
      case 4:
        return this.defaultAnswer(request);
    }
  }

  private sharedAnswer({ levels, key, storeIsAway, deadline }: FallbackRequest) {
    if (key === undefined || storeIsAway === true || !this.caches.hasShared(levels)) {
      return undefined;
    }
    const hasMore = levels.level3 !== undefined || makerOf(levels) !== undefined;
    const budgetMs = this.budgetMs(deadline, hasMore);
    return budgetMs <= 0 ? undefined : this.caches.readShared(levels, key, budgetMs);
  }

  private defaultAnswer(
    request: FallbackRequest,
  ): Cached | undefined | Promise<Cached | undefined> {
    const { level4 } = request.levels;
    if (level4 === undefined) return undefined;
    if ('make' in level4) return this.made(4, request);
    return level4.value === undefined ? undefined : fresh(copyOf(level4.value));
  }

  private async made(level: 3 | 4, request: FallbackRequest): Promise<Cached | undefined> {
    const { levels, key, reason, error, context, deadline } = request;
    const runners = this.runnersOf(levels);
    const runner = level === 3 ? runners.three : runners.four;
    const remainingMs = this.budgetMs(deadline, level === 3 && runners.four !== undefined);
    // A function without time left may still have its answer at hand; level 4 is worth a call.
    if (runner === undefined || (level === 3 && remainingMs <= 0)) return undefined;
    const call = { level, reason, error, context, remainingMs: Math.max(0, remainingMs) };
    // The function may answer another reason otherwise.
    const shared = key === undefined ? undefined : `${reason} ${key}`;
    const result = await runner.make(call, shared, this.figures.maxFallbacks);
    // At level 3 nothing is no answer, at level 4 it may be meant.
    const fault =
      typeof result === 'string' ? result : result.value === null && level === 3 && 'empty';
    if (fault) {
      this.counts.fault(fault);
      return undefined;
    }
    return typeof result === 'string' ? undefined : fresh(result.value);
  }

  private budgetMs(deadline: number, leavesSome: boolean): number {
    const remainingMs = (deadline - this.clock.now()) / 1000;
    return leavesSome ? remainingMs * SHARE_OF_TIME : remainingMs;
  }

  private reduced(level: DegradeLevel, levels: FallbackLevels, value: unknown): unknown {
    if (!(levels.coreLevels ?? REDUCED).includes(level)) return value;
    const { resource } = levels;
    const own = resource === undefined ? undefined : this.figures.resources.get(resource);
    const fields = own?.coreFields ?? this.figures.coreFields ?? levels.coreFields;
    return fields === undefined ? value : keepFields(value, fields);
  }

  private runnersOf(levels: FallbackLevels): Runners {
    let runners = this.runners.get(levels);
    if (runners === undefined) {
      const [three, four] = [levels.level3, makerOf(levels)];
      runners = {
        three: three && this.runnerOf(three, levels.resource, 3),
        four: four && this.runnerOf(four, levels.resource, 4),
      };
      this.runners.set(levels, runners);
    }
    return runners;
  }

  private runnerOf(
    run: FallbackFunction,
    resource: string | undefined,
    level: 3 | 4,
  ): FallbackRunner {
    return new FallbackRunner(run, this.clock, (error) => this.onFault(resource, level, error));
  }
}

function makerOf({ level4 }: FallbackLevels) {
  return level4 !== undefined && 'make' in level4 ? level4.make : undefined;
}

function fresh(value: unknown): Cached {
  return { value, ageMs: 0, ttlMs: 0 };
}

/** A request may change its answer, and the next one must not see that. */
function copyOf(value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value;
  try {
    return isPlainData(value) ? structuredClone(value) : value;
  } catch {
    return value;
  }
}

type ByReason = Record<DegradeReason, number>;
type ByLevel = Record<DegradeLevel, number>;

/** Resources beyond this count as one: names may be many. */
const MOST_RESOURCES = 64;
const OTHER_RESOURCES = '(other)';

/** Answers by level, and why there was none. */
export interface FallbackStats {
  /** Answers by level, and by why they were needed. */
  readonly answers: Readonly<Record<DegradeLevel, Readonly<Record<DegradeReason, number>>>>;
  /** Requests for which there was no answer. */
  readonly unanswered: Readonly<Record<DegradeReason, number>>;
  /** Answers by resource and level. */
  readonly resources: Readonly<Record<string, Readonly<Record<DegradeLevel, number>>>>;
  /** Why functions of levels 3 and 4 gave none. */
  readonly faults: Readonly<Record<FallbackFault, number>>;
}

/** Which level answered for what reason. */
export class FallbackCounts {
  private readonly answers: Record<DegradeLevel, ByReason> = {
    ...{ 1: byReason(), 2: byReason(), 3: byReason(), 4: byReason() },
  };
  private readonly unanswered = byReason();
  private readonly resources = new Map<string, ByLevel>();
  private readonly faults = { threw: 0, hung: 0, busy: 0, stream: 0, empty: 0 };

  answered(level: DegradeLevel, reason: DegradeReason, resource: string | undefined): void {
    this.answers[level][reason]++;
    if (resource !== undefined) this.levelsOf(resource)[level]++;
  }

  unansweredFor(reason: DegradeReason): void {
    this.unanswered[reason]++;
  }

  /** Level 4 as a message: callers see that it is one. */
  gaveMessage(reason: DegradeReason, wasUnanswered: boolean, resource: string | undefined): void {
    if (wasUnanswered) this.unanswered[reason]--;
    this.answered(4, reason, resource);
  }

  fault(fault: FallbackFault): void {
    this.faults[fault]++;
  }

  stats(): FallbackStats {
    const answers = LEVELS.map((level) => [level, { ...this.answers[level] }]);
    return {
      answers: Object.fromEntries(answers) as FallbackStats['answers'],
      unanswered: { ...this.unanswered },
      resources: Object.fromEntries(
        Array.from(this.resources, ([name, one]) => [name, { ...one }]),
      ),
      faults: { ...this.faults },
    };
  }

  private levelsOf(resource: string): ByLevel {
    const name =
      this.resources.has(resource) || this.resources.size < MOST_RESOURCES
        ? resource
        : OTHER_RESOURCES;
    let levels = this.resources.get(name);
    if (levels === undefined) this.resources.set(name, (levels = { 1: 0, 2: 0, 3: 0, 4: 0 }));
    return levels;
  }
}

function byReason(): ByReason {
  return Object.fromEntries(REASONS.map((reason) => [reason, 0])) as ByReason;
}

/** The value with these fields only, `price.amount` for inner ones; of a list, each item so. */
export function keepFields(value: unknown, fields: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => keepFields(item, fields));
  if (value === null || typeof value !== 'object') return value;
  const kept: Record<string, unknown> = {};
  for (const [name, inner] of byFirstName(fields)) {
    if (!Object.hasOwn(value, name)) continue;
    const field = (value as Record<string, unknown>)[name];
    put(kept, name, inner.length === 0 ? field : keepFields(field, inner));
  }
  return kept;
}

/** `a` keeps all of it, also where `a.b` stands beside it. */
function byFirstName(fields: readonly string[]): Map<string, string[]> {
  const whole = new Set(fields.filter((field) => !field.includes('.')));
  const parts = new Map<string, string[]>();
  for (const field of fields) {
    const [name = '', ...rest] = field.split('.');
    const inner = parts.get(name) ?? [];
    if (!whole.has(name)) inner.push(rest.join('.'));
    parts.set(name, inner);
  }
  return parts;
}

/** As a property of its own even where the name means something, as `__proto__` does. */
function put(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}
