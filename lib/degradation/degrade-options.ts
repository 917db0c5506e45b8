import { type ExecutionContext } from '@nestjs/common';
import { type Duration } from '../common/duration.js';
import { type Decision } from '../limiter/decision.js';
import { type DegradeLevel, type DegradeReason } from './core/contract.js';

/** The argument of a method or function that answers in the place of a handler. */
export interface DegradeContext {
  readonly reason: DegradeReason;
  /** The error of the handler. */
  readonly error: unknown;
  /** Of a request that was denied. */
  readonly decision: Decision | undefined;
  readonly level: DegradeLevel;
  readonly context: ExecutionContext;
  /** The request of HTTP, the call of gRPC, the context of a message. */
  readonly request: unknown;
  readonly params: unknown;
  readonly query: unknown;
  /** The body of a request; the message of gRPC and of the message transports. */
  readonly body: unknown;
  /** The rest of the deadline. */
  readonly remainingMs: number;
}

/** Level 4 as a text for people: the answer says that there is none, and why. */
export class DegradeMessage {
  constructor(readonly text: string) {}
}

/** Level 4 as a text for people, with a status that shows a failure. */
export function degradeMessage(text: string): DegradeMessage {
  return new DegradeMessage(text);
}

/** Texts for people, by the level of their answer. For level 4 there is `degradeMessage`. */
export interface DegradeNotice {
  readonly level2?: string;
  readonly level3?: string;
}

/** A question that callers are going to ask, and what makes its answer: as a rule, the handler itself. */
export interface WarmEntry extends WarmUpEntry {
  readonly load: () => unknown;
}

/** Questions, as many as there are: they are read a few at a time. */
export type WarmEntries = Iterable<WarmEntry> | AsyncIterable<WarmEntry>;

/** The options of `@Degrade`. One that is left out comes from the class, then from the module. */
export interface DegradeOptions {
  /** The resource that recovers as one; routes with the same name share its state. Default: `Class.method`. */
  readonly resource?: string;
  /** How old an answer of the shared cache may be; false leaves that level out. */
  readonly level1?: Duration | false;
  /** How old an answer of the process cache may be; false leaves that level out. */
  readonly level2?: Duration | false;
  /** The method of the controller that makes a simplified answer. */
  readonly level3?: string;
  /** The default answer: a value, a function that makes one, or `degradeMessage('…')`. */
  readonly level4?: unknown;
  /** The method that answers requests over their limit, in the place of `level3`. */
  readonly blockHandler?: string;
  /** The method that answers failed requests, in the place of `level3`. */
  readonly fallback?: string;
  /** By then the request is answered. Default: the module's; for writes none. */
  readonly deadline?: Duration;
  /** From then on the levels are tried while the handler still runs. Default: the module's. */
  readonly slow?: Duration;
  /** All callers get the same answer. */
  readonly shared?: boolean;
  /** Headers that the answer depends on. */
  readonly vary?: readonly string[];
  /** The caller that an answer belongs to, where `request.user` does not tell. */
  readonly principal?: (context: ExecutionContext) => string | number | undefined | null;
  /** Part of the key: a new one leaves the answers of older versions behind. */
  readonly schemaVersion?: string | number;
  /**
   * A text for people beside an answer of level 2 ("may be out of date") or 3 ("reviews are
   * loading…"). It travels with the mark of the answer, and in `field`.
   */
  readonly notice?: DegradeNotice;
  /** Puts `{ level, reason, ageMs }` and the notice into answers that are objects, under this name. */
  readonly field?: string;
  /** The fields that a simplified answer keeps. */
  readonly coreFields?: readonly string[];
  /** The handler only reads, although its transport or its verb does not say so. */
  readonly idempotent?: boolean;
  /** Makes of cached plain data what the handler had returned, such as an instance of a class. */
  readonly revive?: (plain: unknown) => unknown;
  /** Lists the questions that `Degradation.warm()` fills the caches with; it is given the controller. */
  readonly warm?: (controller: never) => WarmEntries | Promise<WarmEntries>;
  /** Whether an error is a failure of the resource. Default: all but 4xx and other mistakes of callers. */
  readonly isFailure?: (error: unknown) => boolean;
}

/** A request to be warmed up, as the application names its parts. */
export interface WarmUpEntry {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  /** Of messages, and of requests that have one. */
  readonly body?: unknown;
  /**
   * Where the handler is served under several paths or patterns: the one of the request, whole. Where a
   * header has the version, with it: `/orders version 2`.
   */
  readonly path?: string;
  /** The headers that the route varies by. */
  readonly vary?: Readonly<Record<string, string>>;
  /** The caller that the answer belongs to; left out for callers without a name. */
  readonly principal?: string;
}

const DEGRADE = Symbol('weir:degrade');

export function setDegrade(target: object, options: DegradeOptions): void {
  Reflect.defineMetadata(DEGRADE, options, target);
}

/** Whether it stands on this very class, and not on one that it extends. */
export function hasOwnDegrade(type: object): boolean {
  return Reflect.hasOwnMetadata(DEGRADE, type);
}

/** The options of `@Degrade` on a class or on a method; undefined if it is not there. */
export function degradeOf(target: object): DegradeOptions | undefined {
  return Reflect.getMetadata(DEGRADE, target) as DegradeOptions | undefined;
}
