import { nearest } from './nearest.js';
import { escaped } from './quoted.js';

/** Every error of this library is one of these; `code` is stable and safe to switch on. */
export abstract class RateLimitError extends Error {
  abstract readonly code: string;

  // Not `ErrorOptions`: compilers that aim at ES2017 do not know it.
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** An option or argument that can never work. Names the field, carries the value. */
export class InvalidArgumentError extends RateLimitError {
  readonly code: string = 'INVALID_ARGUMENT';
  readonly value!: unknown;

  constructor(
    readonly field: string,
    value: unknown,
    readonly expectation: string,
    message = `${field}: expected ${expectation}${value === undefined ? '' : `, got ${describe(value)}`}`,
  ) {
    super(message);
    // For programs to read: Node shows all others of an error that ends the process, and it may be a secret.
    Object.defineProperty(this, 'value', { value, enumerable: false });
  }
}

/** Something was taken out of the configuration that `who` cannot do without. */
export function mustStay(field: string, who: string): InvalidArgumentError {
  const expectation = `to stay: ${who} names it`;
  return new InvalidArgumentError(
    field,
    undefined,
    expectation,
    `${field}: expected ${expectation}`,
  );
}

/** An option that does not exist. Its value is not repeated: it may be a secret in a wrong place. */
export class UnknownOptionError extends InvalidArgumentError {
  override readonly code = 'UNKNOWN_OPTION';

  constructor(
    field: string,
    known: readonly string[],
    hint: string = didYouMean(field.slice(field.lastIndexOf('.') + 1), known),
  ) {
    const expectation = `one of ${known.join(', ')}`;
    super(
      field,
      undefined,
      expectation,
      `${field}: no such option;${hint} expected ${expectation}`,
    );
  }
}

/** Something of the library is used in an application that has not imported its module. */
export class ModuleMissingError extends RateLimitError {
  readonly code = 'MODULE_MISSING';

  constructor(who: string) {
    super(
      `${who} needs RateLimitModule, which this application does not import: ` +
        'add RateLimitModule.forRoot({ … }) to the imports of its root module, or RateLimitTestingModule of ' +
        "'nestjs-weir/testing' to those of a test",
    );
  }
}

/** A hint for messages: what was probably meant by a name that is not known, or nothing. */
export function didYouMean(name: string, known: readonly string[]): string {
  const meant = nearest(name, known);
  return meant === undefined ? '' : ` did you mean '${meant}'?`;
}

/** The cost is more than a request may ever have: waiting would not help. */
export class CostExceedsLimitError extends InvalidArgumentError {
  override readonly code = 'COST_EXCEEDS_LIMIT';

  constructor(
    /** The policy, or the app of a quota. */
    readonly policy: string,
    cost: number,
    readonly limit: number,
    why = `which is all that policy "${policy}" ever holds; raise its burst, or lower the cost`,
  ) {
    super('cost', cost, `at most ${limit}, ${why}`);
  }

  /** Of the app's quota, which says how much one request may cost. */
  static ofQuota(app: string, cost: number, maxCost: number): CostExceedsLimitError {
    const why = `the maxCost of the quota that app "${app}" is charged to; raise 'quota.maxCost'`;
    // By `this`: a class that names itself gets another name when it is bundled.
    return new this(app, cost, maxCost, why);
  }
}

/** No policy of that name. */
export class UnknownPolicyError extends InvalidArgumentError {
  override readonly code = 'UNKNOWN_POLICY';

  constructor(policy: unknown, known: readonly string[]) {
    const names = known.length > 0 ? known.map((name) => `"${name}"`).join(', ') : '(none)';
    const hint = typeof policy === 'string' ? didYouMean(policy, known) : '';
    const message = `unknown policy ${describe(policy)};${hint} the limiter has ${names}`;
    super('policy', policy, names, message);
  }
}

/** No app of that name in the quota. */
export class UnknownAppError extends InvalidArgumentError {
  override readonly code = 'UNKNOWN_APP';

  constructor(app: unknown, known: readonly string[]) {
    const names = known.length > 0 ? known.map((name) => `"${name}"`).join(', ') : '(none)';
    const hint = typeof app === 'string' ? didYouMean(app, known) : '';
    super('app', app, names, `unknown app ${describe(app)};${hint} the quota has ${names}`);
  }
}

/** The options cannot be changed in this way while the limiter runs. */
export class RestartNeededError extends InvalidArgumentError {
  override readonly code = 'RESTART_NEEDED';

  constructor(field: string, value: unknown, wanted: string) {
    super(field, value, `${wanted}, as at the start: other values need a restart`);
  }
}

/** Tokens would not come before the deadline, so nothing was taken. */
export class AcquireTimeoutError extends RateLimitError {
  readonly code = 'ACQUIRE_TIMEOUT';

  constructor(
    readonly policy: string,
    readonly timeoutMs: number,
    readonly retryAfterMs: number,
  ) {
    super(
      `policy "${policy}": no tokens within ${timeoutMs} ms (about ${retryAfterMs} ms would be needed)`,
    );
  }
}

/** The line for this key is full; letting it grow would only move the overload into memory. */
export class TooManyWaitersError extends RateLimitError {
  readonly code = 'TOO_MANY_WAITERS';

  constructor(
    readonly policy: string,
    readonly maxWaiters: number,
  ) {
    super(`policy "${policy}": already ${maxWaiters} waiting for this key`);
  }
}

/** The limiter was closed while the call was made or waited. */
export class LimiterClosedError extends RateLimitError {
  readonly code = 'LIMITER_CLOSED';

  constructor() {
    super('the rate limiter is closed');
  }
}

/** The shared store could not answer; which failure mode follows is the policy's choice. */
export class StoreUnavailableError extends RateLimitError {
  readonly code: string = 'STORE_UNAVAILABLE';

  constructor(reason: string, options?: { readonly cause?: unknown }) {
    // Messages of the network may carry the address.
    super(`store unavailable: ${withoutSecrets(reason)}`, options);
  }
}

/** The shared store did not answer in time. The call may still have been carried out there. */
export class StoreTimeoutError extends StoreUnavailableError {
  override readonly code = 'STORE_TIMEOUT';

  constructor(
    readonly timeoutMs: number,
    cause?: Error,
  ) {
    const why = cause === undefined ? '' : ` (${cause.message})`;
    super(`no answer within ${timeoutMs} ms${why}`, { cause });
  }
}

/**
 * A reply of the shared store answers another call, or is none. Nothing of it is counted. A connection
 * of ours is opened anew; a client of yours is left as it is, and fails until it connects again.
 */
export class StrayReplyError extends StoreUnavailableError {
  override readonly code = 'STORE_STRAY_REPLY';

  constructor(
    readonly command: string,
    isOurs: boolean,
  ) {
    const next = isOurs
      ? 'the connection is opened anew'
      : 'connect the client of store.client again, with client.disconnect(true)';
    super(`the reply to ${command} answers another call, or none; ${next}`);
  }
}

/** An optional package is needed and not installed. */
export class MissingPackageError extends RateLimitError {
  readonly code = 'MISSING_PACKAGE';

  constructor(packageName: string, purpose: string, options?: { readonly cause?: unknown }) {
    super(`${purpose} needs the package "${packageName}": npm install ${packageName}`, options);
  }
}

/** An optional package is installed in a version that cannot be used. */
export class WrongPackageError extends RateLimitError {
  readonly code = 'WRONG_PACKAGE';

  constructor(packageName: string, least: string, installed: string, purpose: string) {
    super(
      `${purpose} needs ${packageName} ${least} or later, and ${installed} is installed: ` +
        `npm install ${packageName}@latest`,
    );
  }
}

/** One thing that is wrong in a configuration. */
export interface ConfigIssue {
  /** Where: `apps.checkout.burst`. */
  readonly path: string;
  /** The value that stands there. */
  readonly value: unknown;
  /** The values that would be right. */
  readonly expected: string;
  /** All of it in one sentence. */
  readonly message: string;
}

/** A configuration that is refused, with everything that is wrong in it. */
export class InvalidConfigError extends RateLimitError {
  readonly code = 'INVALID_CONFIG';

  constructor(
    readonly issues: readonly ConfigIssue[],
    name = 'the configuration',
  ) {
    const count = issues.length === 1 ? '1 fault' : `${issues.length} faults`;
    const lines = issues.slice(0, MOST_ISSUES_TOLD).map(({ message }) => `\n  ${cut(message)}`);
    const left = issues.length - lines.length;
    super(`${count} in ${name}:${lines.join('')}${left > 0 ? `\n  and ${left} more` : ''}`);
  }
}

/** `issues` has them all; the message only as many as a reader reads. */
const MOST_ISSUES_TOLD = 50;
/** A name in a document may be as long as all of it. */
const LONGEST_ISSUE = 2000;
const cut = (text: string, longest = LONGEST_ISSUE): string =>
  text.length > longest ? `${text.slice(0, longest)}…` : text;
const LONGEST_VALUE = 80;

/** A value as it stands in messages: in full if it is short, and without what nobody should read. */
export function describe(value: unknown): string {
  return cut(withoutSecrets(escaped(shownText(value))), LONGEST_VALUE);
}

/**
 * A text without the passwords that may stand in it: those of addresses, which may themselves have the
 * signs that end them, and those that are named as such.
 */
export function withoutSecrets(text: string): string {
  return text
    .replace(/\S+/g, withoutPassword)
    .replace(/\b(rediss?:)(?!\/\/)[^\s"':]*:[^\s"']+/gi, '$1…')
    .replace(SECRET_PARAMETER, '$1…');
}

/**
 * From the first `//` to the last `@`. Not by a pattern: each `//` of a long text without `@` would be
 * looked at to its end, which takes seconds for what fits into a request.
 */
function withoutPassword(word: string): string {
  const from = word.indexOf('//') + '//'.length;
  const to = word.lastIndexOf('@');
  return from > 1 && to >= from ? word.slice(0, from) + word.slice(to + 1) : word;
}

const SECRET =
  'pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|(?:api|access|secret|private)[-_]?key';
/** Also as the end of a longer name, `sentinelPassword=`. */
const SECRET_PARAMETER = new RegExp(`((?:${SECRET})=)[^&\\s"]+`, 'gi');
const SECRET_FIELD = new RegExp(`(?:${SECRET})$`, 'i');

function shownText(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value);
    case 'function':
      return `function ${value.name}`;
    case 'object':
      if (value instanceof Date && Number.isNaN(value.getTime())) return String(value);
      return asJson(value) ?? Object.prototype.toString.call(value);
    default:
      return String(value);
  }
}

function asJson(value: object | null): string | undefined {
  try {
    const text: unknown = JSON.stringify(value, (name, one: unknown) =>
      SECRET_FIELD.test(name) && isShown(one) ? '…' : one,
    );
    return typeof text === 'string' ? text : undefined;
  } catch {
    return undefined;
  }
}

/** A password may be a number, or a list of them. */
const isShown = (value: unknown): boolean =>
  value !== undefined && value !== null && typeof value !== 'boolean';

export const errorText = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
