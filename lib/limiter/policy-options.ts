import { type Flat } from '../common/schema.js';
import { AlgorithmCode, bucketLimit, windowLimit, type Limit } from '../algorithms/limit.js';
import { durationMs, parseRate, type Duration, type Rate } from '../common/duration.js';
import { InvalidArgumentError } from '../common/errors.js';
import { remembered } from '../common/immutable.js';
import { boundedKey } from '../common/ids.js';
import { NAME, oneOf, plainObject, rejectUnknown, wholeAbove0 } from '../common/validate.js';
import { DEFAULT_WIDTH, LEAST_WIDTH, MOST_WIDTH } from '../local/hot-values.js';

/** How a policy counts. */
export type AlgorithmName = 'token-bucket' | 'leaky-bucket' | 'sliding-window';

/** The treatment of a policy's requests while the shared store cannot answer. */
export type FailureMode = 'local' | 'open' | 'closed';

/** Where a shared bucket is decided: always in the store, or also with tokens taken ahead. */
export type SyncMode = 'auto' | 'exact' | 'leased';

/** How values in demand are found. The initial values are the defaults. */
export class HotOptions {
  /** Cells of a row of the table that counts; more for more than about a million requests a period. */
  width = DEFAULT_WIDTH;
}

/** The figures of a limit. */
export interface LimitOptions {
  /** Tokens per period, or both at once: `'100/min'`. */
  rate?: Rate;
  /** The period of the rate. Default one second. */
  period?: Duration;
  /** Tokens that a bucket holds; by default the number in `rate`. Not for sliding windows. */
  burst?: number;
}

export const KNOWN_FIGURES: readonly (keyof LimitOptions)[] = ['rate', 'period', 'burst'];
export const DEFAULT_PERIOD: Duration = '1s';
const DEFAULT_PERIOD_MS = durationMs(DEFAULT_PERIOD, 'period');
/** Keeps every figure that a bucket can reach a whole number below 2^53. */
const LONGEST_FILL_MS = 100 * 365 * 86_400_000;

/** A named rule. The initial values are the defaults. */
export class PolicyOptions implements LimitOptions {
  /**
   * `token-bucket` lets bursts pass and holds the average; `leaky-bucket` with `mode: 'shaper'`
   * makes requests wait so that they leave evenly; `sliding-window` counts the last period.
   */
  algorithm: AlgorithmName = 'token-bucket';
  rate?: Rate;
  period?: Duration;
  burst?: number;
  /** Leaky bucket: deny what is too much, or delay what fits into the bucket. */
  mode: 'policer' | 'shaper' = 'policer';
  /** Shaper: a request that would have to wait longer is denied. Default: whoever fits may wait. */
  maxDelay?: Duration;
  /** Sliding window: into how many parts the period is cut, 2 or more. More is more exact, and larger. */
  subWindows = 10;
  /** Tokens that a request takes if it does not say. */
  cost = 1;
  /** Other figures for some callers, by name: `{ vip: 50, partner: { rate: '500/min' } }`. */
  tiers: Record<string, LimitOptions | Rate> = {};
  /** The tier of requests that name none, or one that is not there. Default: the policy's figures. */
  defaultTier?: string;
  /** `fleet`: one bucket per key for all processes; `node`: each process by itself. */
  scope: 'fleet' | 'node' = 'fleet';
  /**
   * Token buckets on Redis: whether a process takes tokens of a key ahead and decides by itself.
   * `auto`: for keys in demand; `leased`: for every key; `exact`: never.
   */
  sync: SyncMode = 'auto';
  /** While the store is away: each node its share (`local`), let all pass, or none. */
  failureMode: FailureMode = 'local';
  /** Count what would be denied, and let it pass. */
  shadow = false;
  /** How many `acquire` calls may wait for one key. */
  maxWaiters = 1000;
  /**
   * For keys of which there are very many, most of them rare: a value that asked for no more than a tenth
   * of its limit in the last period passes without a bucket and without a call to the store. In all a value is
   * admitted up to 1.1 times the limit.
   */
  hot: boolean | Partial<HotOptions> = false;
  /**
   * The part of the requests that a tier denies which may pass all the same, out of one bucket of `limit`:
   * `{ S: 0.8, A: 0.5, limit: '20000/s' }`. Other tiers have none.
   */
  passThrough?: PassThrough;
  /**
   * With `scope: 'node'`: while this process is under load a request costs more, so that the limit shrinks to half
   * of it at the most. The load is measured where `overload` is enabled.
   */
  adaptive = false;
  /** The tier of some values of the key: `{ 'sku-42': 'flagship' }`. A tier that a request names comes first. */
  values: Readonly<Record<string, string>> = {};
}

/** The parts of tiers, from 0 to 1, and as `limit`, which must be there, the limit of what passes in all. */
export type PassThrough = Readonly<Record<string, LimitOptions | Rate>>;

/** The options that an algorithm looks at: those of another one would do nothing. */
export type ByAlgorithm =
  | {
      algorithm?: 'token-bucket' | undefined;
      mode?: undefined;
      maxDelay?: undefined;
      subWindows?: undefined;
    }
  | { algorithm: 'leaky-bucket'; subWindows?: undefined }
  | { algorithm: 'sliding-window'; burst?: undefined; mode?: undefined; maxDelay?: undefined };

/** The limit of a policy: its own, or those of its tiers. */
export type WithLimit = { rate: Rate } | { rate?: undefined; tiers: PolicyOptions['tiers'] };

/** A policy as it is written: at least a rate, and nothing that its algorithm does not look at. */
export type PolicyInput = Flat<PolicyFields & ByAlgorithm & WithLimit>;

/** The options of a policy before they are checked. */
export type PolicyFields = Partial<PolicyOptions>;

/** The part of the requests denied by tiers that may pass all the same, checked. */
export interface ExcessSettings {
  readonly limit: Limit;
  /** By tier, above 0. */
  readonly parts: ReadonlyMap<string, number>;
}

/** A policy, checked: its options with their units, and the limit of each tier. */
export interface PolicySettings {
  readonly name: string;
  /** Its own figures, of which tiers have what they do not say themselves. */
  readonly figures: LimitOptions;
  readonly algorithm: AlgorithmCode;
  readonly maxDelayMs: number;
  readonly subWindows: number;
  readonly cost: number;
  readonly scope: PolicyOptions['scope'];
  readonly sync: SyncMode;
  readonly failureMode: FailureMode;
  readonly shadow: boolean;
  readonly maxWaiters: number;
  readonly adaptive: boolean;
  readonly limits: ReadonlyMap<string, Limit>;
  readonly defaultTier: string;
  /** Undefined if nothing of what is denied may pass. */
  readonly excess: ExcessSettings | undefined;
  /** Of its table of values in demand; undefined if it has none. */
  readonly hotWidth: number | undefined;
  /** The tiers of some keys, as the limiter keeps them. */
  readonly tierOfValue: ReadonlyMap<string, string>;
}

/** How all limits of a policy count, whatever their figures. */
type Counting = Pick<PolicySettings, 'algorithm' | 'maxDelayMs' | 'subWindows'>;

const NO_BURST = "no burst for a sliding window: leave it out, or use 'token-bucket'";
/** The tier whose figures stand in the policy itself. */
const BASE_TIER = 'default';
/** Exceptions are looked up in memory, by every request. */
const MOST_VALUES = 10_000;
const LEAST_SUB_WINDOWS = 2;
const MOST_SUB_WINDOWS = 120;
export const POLICY_OPTIONS: readonly string[] = [
  ...KNOWN_FIGURES,
  ...Object.keys(new PolicyOptions()).filter((option) => !KNOWN_FIGURES.includes(option as never)),
  'maxDelay',
  'defaultTier',
  'passThrough',
];

export function checkPolicy(name: string, input: PolicyFields): PolicySettings {
  return checked(input, name);
}

/** Most policies of a change are as they were. */
const checked = remembered((input: PolicyFields, name: string): PolicySettings => {
  const at = `policies.${name}`;
  if (!NAME.test(name)) {
    throw new InvalidArgumentError('policies', name, 'names of up to 64 letters, digits and _ . -');
  }
  plainObject(at, input, 'an object with at least a rate');
  rejectUnknown(at, input, POLICY_OPTIONS);
  const options = withDefaults(at, input);
  rejectLostPeriod(at, input);
  rejectIdle(at, input, options);
  rejectUnleasable(at, options);
  rejectAdaptiveFleet(at, options);
  const counting = countingOf(at, options);
  const limits = tierLimits(at, options, counting);
  const defaultTier = options.defaultTier ?? BASE_TIER;
  if (!limits.has(defaultTier)) {
    if (options.defaultTier === undefined) {
      throw new InvalidArgumentError(`${at}.rate`, options.rate, "a rate, or a 'defaultTier'");
    }
    oneOf(`${at}.defaultTier`, defaultTier, [...limits.keys()]);
  }
  for (const limit of limits.values()) {
    if (options.cost > limit.capacity) {
      throw new InvalidArgumentError(
        `${at}.cost`,
        options.cost,
        `at most ${limit.capacity}, all that the limit ever holds (raise its burst)`,
      );
    }
  }
  const tierOfValue = valuesOf(at, options, limits);
  const excess = excessOf(at, options, limits, counting);
  const { rate, period, burst } = options;
  return {
    name,
    figures: { rate, period, burst },
    ...counting,
    cost: options.cost,
    scope: options.scope,
    sync: options.sync,
    failureMode: options.failureMode,
    shadow: options.shadow,
    maxWaiters: options.maxWaiters,
    adaptive: options.adaptive,
    limits,
    defaultTier,
    excess,
    hotWidth: widthOf(options),
    tierOfValue,
  };
});

type Check = (field: string, value: unknown) => void;

const among =
  (...choices: string[]): Check =>
  (field, value) =>
    oneOf(field, value, choices);

/** Checks each option by itself; the figures of a tier are checked with the tier. */
const CHECKS: ReadonlyMap<string, Check> = new Map<keyof PolicyOptions, Check>([
  ['algorithm', among('token-bucket', 'leaky-bucket', 'sliding-window')],
  ['mode', among('policer', 'shaper')],
  ['scope', among('fleet', 'node')],
  ['sync', among('auto', 'exact', 'leased')],
  ['failureMode', among('local', 'open', 'closed')],
  ['cost', wholeAbove0],
  ['maxWaiters', wholeAbove0],
  ['subWindows', countOfSubWindows],
  ['shadow', trueOrFalse],
  ['adaptive', trueOrFalse],
  ['period', (field, value) => durationMs(value, field)],
  ['burst', wholeAbove0],
  ['maxDelay', (field, value) => durationMs(value, field)],
  ['hot', hotOrNot],
]);

function hotOrNot(field: string, value: unknown): void {
  if (typeof value === 'boolean') return;
  plainObject(field, value, 'true, false, or an object with width');
  rejectUnknown(field, value as object, Object.keys(new HotOptions()));
  const { width } = value as Partial<HotOptions>;
  if (width === undefined) return;
  const fits = Number.isInteger(width) && width >= LEAST_WIDTH && width <= MOST_WIDTH;
  if (fits && (width & (width - 1)) === 0) return;
  const expected = `a power of two from ${LEAST_WIDTH} to ${MOST_WIDTH}`;
  throw new InvalidArgumentError(`${field}.width`, width, expected);
}

function widthOf({ hot }: PolicyOptions): number | undefined {
  if (typeof hot === 'object') return hot.width ?? DEFAULT_WIDTH;
  return hot ? DEFAULT_WIDTH : undefined;
}

function valuesOf(
  at: string,
  { values }: PolicyOptions,
  limits: ReadonlyMap<string, Limit>,
): ReadonlyMap<string, string> {
  plainObject(`${at}.values`, values, 'an object of tiers by value');
  const entries = Object.entries(values);
  if (entries.length > MOST_VALUES) {
    const expected = `at most ${MOST_VALUES} values`;
    throw new InvalidArgumentError(`${at}.values`, entries.length, expected);
  }
  return new Map(
    entries.map(([value, tier]) => {
      oneOf(`${at}.values.${value}`, tier, [...limits.keys()]);
      return [boundedKey(value), tier];
    }),
  );
}

function excessOf(
  at: string,
  options: PolicyOptions,
  limits: ReadonlyMap<string, Limit>,
  counting: Counting,
): ExcessSettings | undefined {
  const { passThrough } = options;
  if (passThrough === undefined) return undefined;
  const field = `${at}.passThrough`;
  plainObject(field, passThrough, "parts by tier, and a limit: { S: 0.8, limit: '20000/s' }");
  const { limit: input, ...parts } = passThrough;
  if (input === undefined) {
    throw new InvalidArgumentError(`${field}.limit`, input, 'a rate, or an object with rate…');
  }
  if (options.shadow) {
    throw new InvalidArgumentError(field, passThrough, 'no shadow beside it: nothing is denied');
  }
  for (const [tier, part] of Object.entries(parts)) {
    oneOf(field, tier, [...limits.keys()]);
    if (typeof part === 'number' && part >= 0 && part <= 1) continue;
    throw new InvalidArgumentError(`${field}.${tier}`, part, 'a number from 0 to 1');
  }
  const figures = figuresOf(`${field}.limit`, input);
  const limit = compileLimit(`${field}.limit`, inherit(at, options, figures), counting);
  if (options.cost > limit.capacity) {
    throw new InvalidArgumentError(
      `${field}.limit`,
      input,
      `no less than the cost, ${options.cost}`,
    );
  }
  const some = Object.entries(parts as Record<string, number>).filter(([, part]) => part > 0);
  return { limit, parts: new Map(some) };
}

/** One sub-window would forget all at once, and so admit twice the limit around that instant. */
function countOfSubWindows(field: string, value: unknown): void {
  const isOne = Number.isInteger(value) && (value as number) >= LEAST_SUB_WINDOWS;
  if (isOne && (value as number) <= MOST_SUB_WINDOWS) return;
  const expected = `a whole number from ${LEAST_SUB_WINDOWS} to ${MOST_SUB_WINDOWS}`;
  throw new InvalidArgumentError(field, value, expected);
}

function trueOrFalse(field: string, value: unknown): void {
  if (typeof value === 'boolean') return;
  throw new InvalidArgumentError(field, value, 'true or false');
}

/** Only what is given is checked: the defaults are right. */
function withDefaults(at: string, input: PolicyFields): PolicyOptions {
  const options = new PolicyOptions() as PolicyOptions & Record<string, unknown>;
  for (const option of Object.keys(input)) {
    const value: unknown = input[option as keyof PolicyOptions];
    // `{ burst: undefined }` means the default, as people expect of spread options.
    if (value === undefined) continue;
    CHECKS.get(option)?.(`${at}.${option}`, value);
    options[option] = value;
  }
  return options;
}

/** `{ rate: 100, period: config.get('TTL') }` without such a setting would be 100 a second where 100 a minute was meant. */
function rejectLostPeriod(at: string, input: PolicyFields): void {
  const isLost = 'period' in input && input.period === undefined;
  if (!isLost || typeof input.rate !== 'number') return;
  const expected = 'a duration, not undefined; without the field it is one second';
  throw new InvalidArgumentError(`${at}.period`, undefined, expected);
}

const USES: readonly [keyof PolicyOptions, (options: PolicyOptions) => boolean, string][] = [
  [
    'mode',
    ({ algorithm }) => algorithm === 'leaky-bucket',
    "no mode without algorithm: 'leaky-bucket'",
  ],
  [
    'maxDelay',
    ({ algorithm, mode }) => algorithm === 'leaky-bucket' && mode === 'shaper',
    "mode: 'shaper' beside it",
  ],
  [
    'subWindows',
    ({ algorithm }) => algorithm === 'sliding-window',
    "algorithm: 'sliding-window' beside it",
  ],
  ['burst', ({ algorithm }) => algorithm !== 'sliding-window', NO_BURST],
  [
    'hot',
    ({ hot, algorithm, mode }) =>
      hot === false || algorithm !== 'leaky-bucket' || mode !== 'shaper',
    'no shaper beside it: a request that passes uncounted would not wait for its turn',
  ],
];

/** An option that the algorithm does not look at would be an option that silently does nothing. */
function rejectIdle(at: string, input: PolicyFields, options: PolicyOptions): void {
  for (const [option, isUsed, needs] of USES) {
    if (input[option] !== undefined && !isUsed(options)) {
      throw new InvalidArgumentError(`${at}.${option}`, input[option], needs);
    }
  }
}

function rejectUnleasable(at: string, { sync, algorithm, scope }: PolicyOptions): void {
  if (sync !== 'leased') return;
  const field = `${at}.sync`;
  if (algorithm !== 'token-bucket') {
    throw new InvalidArgumentError(field, sync, "'auto' or 'exact': only token buckets are leased");
  }
  if (scope !== 'fleet') {
    throw new InvalidArgumentError(field, sync, "scope: 'fleet' beside it; a node leases nothing");
  }
}

function rejectAdaptiveFleet(at: string, { adaptive, scope }: PolicyOptions): void {
  if (!adaptive || scope === 'node') return;
  const expected =
    "scope: 'node' beside it; a fleet's limit is a contract, and the load of one node must not move it";
  throw new InvalidArgumentError(`${at}.adaptive`, adaptive, expected);
}

function tierLimits(at: string, options: PolicyOptions, counting: Counting): Map<string, Limit> {
  const limits = new Map<string, Limit>();
  if (options.rate !== undefined) limits.set(BASE_TIER, compileLimit(at, options, counting));
  plainObject(`${at}.tiers`, options.tiers, 'an object of tiers by name');
  for (const [tier, input] of Object.entries(options.tiers)) {
    if (!NAME.test(tier)) {
      throw new InvalidArgumentError(`${at}.tiers`, tier, 'names of letters, digits and _ . -');
    }
    const field = `${at}.tiers.${tier}`;
    if (limits.has(tier)) {
      throw new InvalidArgumentError(
        field,
        input,
        "another name; 'default' is the policy's own rate",
      );
    }
    const figures = figuresOf(field, input);
    limits.set(tier, compileLimit(field, inherit(at, options, figures), counting));
  }
  return limits;
}

function figuresOf(field: string, input: LimitOptions | Rate): LimitOptions {
  const figures = typeof input === 'number' || typeof input === 'string' ? { rate: input } : input;
  plainObject(field, figures, 'a rate, or an object with rate, period or burst');
  rejectUnknown(field, figures, KNOWN_FIGURES);
  return figures;
}

/** A tier has the policy's period, but its burst only where the tier has no rate of its own. */
export function inherit(at: string, policy: LimitOptions, tier: LimitOptions): LimitOptions {
  const isText = typeof policy.rate === 'string';
  const base = isText ? parseRate(policy.rate as string, `${at}.rate`) : undefined;
  const rate = tier.rate === undefined ? (base?.rate ?? policy.rate) : tier.rate;
  const inherited = typeof rate === 'string' ? undefined : (base?.periodMs ?? policy.period);
  const period = tier.period === undefined ? inherited : tier.period;
  const burst = tier.burst === undefined && tier.rate === undefined ? policy.burst : tier.burst;
  return { rate, period, burst };
}

/** The limit of a tier, or of the policy itself. */
export function compileLimit(at: string, figures: LimitOptions, counting: Counting): Limit {
  const { rate, periodMs } = checkRate(at, figures);
  const { algorithm, maxDelayMs, subWindows } = counting;
  if (algorithm === AlgorithmCode.SlidingWindow) {
    wholeAbove0(`${at}.rate`, rate);
    if (figures.burst === undefined) return windowLimit(rate, periodMs, subWindows);
    throw new InvalidArgumentError(`${at}.burst`, figures.burst, NO_BURST);
  }
  const burst = figures.burst === undefined ? Math.max(1, Math.floor(rate)) : figures.burst;
  wholeAbove0(`${at}.burst`, burst);
  if ((burst / rate) * periodMs > LONGEST_FILL_MS) {
    throw new InvalidArgumentError(`${at}.burst`, burst, 'a bucket that is full within 100 years');
  }
  return bucketLimit(algorithm, rate, periodMs, burst, maxDelayMs);
}

function checkRate(at: string, figures: LimitOptions): { rate: number; periodMs: number } {
  const { rate, period } = figures;
  if (typeof rate === 'string' && period !== undefined) {
    throw new InvalidArgumentError(`${at}.period`, period, 'no period beside a rate text');
  }
  const parsed =
    typeof rate === 'string'
      ? parseRate(rate, `${at}.rate`)
      : { rate, periodMs: periodMsOf(period, `${at}.period`) };
  if (typeof parsed.rate !== 'number' || !(parsed.rate > 0) || !Number.isFinite(parsed.rate)) {
    throw new InvalidArgumentError(`${at}.rate`, rate, 'a finite number above 0');
  }
  return { rate: parsed.rate, periodMs: parsed.periodMs };
}

const periodMsOf = (period: Duration | undefined, field: string): number =>
  period === undefined ? DEFAULT_PERIOD_MS : durationMs(period, field);

function countingOf(at: string, options: PolicyOptions): Counting {
  const { maxDelay, subWindows } = options;
  const maxDelayMs = maxDelay === undefined ? Infinity : durationMs(maxDelay, `${at}.maxDelay`);
  return { algorithm: codeOf(options), maxDelayMs, subWindows };
}

function codeOf(policy: PolicyOptions): AlgorithmCode {
  switch (policy.algorithm) {
    case 'token-bucket':
      return AlgorithmCode.TokenBucket;
    case 'leaky-bucket':
      return policy.mode === 'shaper' ? AlgorithmCode.LeakyShaper : AlgorithmCode.LeakyPolicer;
    case 'sliding-window':
      return AlgorithmCode.SlidingWindow;
  }
}
