import { durationMs, type Duration } from '../../common/duration.js';
import { InvalidArgumentError, UnknownOptionError } from '../../common/errors.js';
import { deepFreeze, remembered } from '../../common/immutable.js';
import { Field, Group, Named, type Shape } from '../../common/schema.js';
import { withoutUndefined } from '../../common/validate.js';
import { type SeriesKind } from '../series.js';
import { AlertsOptions, type HeldOptions, type Severity } from './alert-options.js';
import { alertsSchema, type AlertsInput } from './alerts.schema.js';
import {
  STATE_RULES,
  type FigureRuleName,
  type RuleName,
  type StateRuleName,
} from './rule-names.js';

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** The rings hold seconds for two minutes, times for fifteen, minutes for three hours, hours for a week. */
export const SECONDS_KEPT_MS = 120 * SECOND_MS;
const TIMES_KEPT_MS = 15 * MINUTE_MS;
const MINUTES_KEPT_MS = 180 * MINUTE_MS;
const HOURS_KEPT_MS = 168 * HOUR_MS;

interface AnyRule {
  /** The name by which an alert is known: `degraded` is four of them. */
  readonly id: string;
  readonly severity: Severity;
  readonly everyMs: number;
  readonly holdMs: number;
  readonly resolveAt: number;
  /** Kinds of series that the rule looks at; none for a rule about a state, which names them itself. */
  readonly kinds: readonly SeriesKind[];
}

export interface QpsRise extends AnyRule {
  readonly name: 'qpsRise';
  readonly factor: number;
  readonly windowMs: number;
  readonly baselineMs: number;
  readonly minRate: number;
  readonly evaluations: number;
  readonly newUsualAfterMs: number;
}

export interface ErrorRate extends AnyRule {
  readonly name: 'errorRate';
  readonly above: number;
  readonly windowMs: number;
  readonly longWindowMs: number;
  readonly minRequests: number;
}

export interface P99Rise extends AnyRule {
  readonly name: 'p99Rise';
  readonly factor: number;
  readonly windowMs: number;
  readonly baselineMs: number;
  readonly aboveMs: number;
  readonly minRequests: number;
}

export interface DenialRise extends AnyRule {
  readonly name: 'denialRise';
  readonly above: number;
  readonly factor: number;
  readonly windowMs: number;
  readonly baselineMs: number;
  readonly minRequests: number;
}

export interface SlowCalls extends AnyRule {
  readonly name: 'slowCalls';
  readonly above: number;
  readonly windowMs: number;
  readonly minCalls: number;
}

export interface Degraded extends AnyRule {
  readonly name: 'degraded';
  readonly level: 1 | 2 | 3 | 4;
  readonly above: number;
  readonly windowMs: number;
  readonly minAnswers: number;
}

export interface Peak extends AnyRule {
  readonly name: 'peak';
  readonly above: number;
  readonly windowMs: number;
  readonly horizonMs: number;
}

/** A state that should not last. */
export interface Held extends AnyRule {
  readonly name: StateRuleName;
  readonly afterMs: number;
  /** Only of `relapse`: how many falls, within what time, are the state. */
  readonly times?: number;
  readonly windowMs?: number;
}

export type Rule = QpsRise | ErrorRate | P99Rise | DenialRise | SlowCalls | Degraded | Peak | Held;

export interface Mute {
  /** Undefined: of all series. */
  readonly series: string | undefined;
  /** Wall-clock milliseconds. */
  readonly untilMs: number;
}

/** The checked section. */
export interface AlertSettings {
  readonly rules: readonly Rule[];
  readonly mutes: ReadonlyMap<RuleName, Mute>;
}

export const isHeld = (rule: Rule): rule is Held =>
  (STATE_RULES as readonly string[]).includes(rule.name);

/** A section that says nothing. It cannot change, so that its rules are made once. */
const BY_DEFAULT: AlertsInput = deepFreeze({});

/** The rules of a section, with the defaults. Throws at the first fault. */
export function checkAlerts(input = BY_DEFAULT, at = 'alerts'): AlertSettings {
  return settingsOf(input, at);
}

/** Few changes of a configuration are about alerts, and every process prepares for each change. */
const settingsOf = remembered((input: AlertsInput, at: string): AlertSettings => {
  checkForm(input, at);
  const options = overDefaults(new AlertsOptions(), input);
  const { mute = {} } = input;
  const common = {
    holdMs: durationMs(options.hold, `${at}.hold`),
    resolveAt: options.resolveAt,
  };
  // Checked even where they are switched off: what is switched on later must not be wrong then.
  const rules = [...figureRules(options, common, at), ...stateRules(options, common, at)];
  return {
    rules: options.enabled ? rules.filter(({ isOn }) => isOn).map(({ rule }) => rule) : [],
    mutes: new Map(
      Object.entries(mute).map(([name, { series, until }]) => [
        name as RuleName,
        { series, untilMs: until === undefined ? Infinity : Date.parse(until) },
      ]),
    ),
  };
});

type Common = Pick<AnyRule, 'holdMs' | 'resolveAt'>;

interface Switched {
  readonly isOn: boolean;
  readonly rule: Rule;
}

const REQUESTS: readonly SeriesKind[] = ['total', 'app', 'policy'];
const ANSWERS: readonly SeriesKind[] = ['total', 'resource'];
const TOKENS: readonly SeriesKind[] = ['total', 'app'];
const CALLS: readonly SeriesKind[] = ['resource'];

/** Time between two looks at each. */
const EVERY_MS: Readonly<Record<FigureRuleName, number>> = {
  qpsRise: SECOND_MS,
  errorRate: 5 * SECOND_MS,
  p99Rise: 15 * SECOND_MS,
  denialRise: 5 * SECOND_MS,
  slowCalls: 5 * SECOND_MS,
  degraded: 15 * SECOND_MS,
  peak: 5 * MINUTE_MS,
};

function figureRules(options: AlertsOptions, common: Common, at: string): Switched[] {
  const { qpsRise, errorRate } = options.seconds;
  const { p99Rise, denialRise, slowCalls } = options.minutes;
  const { peak } = options.hours;
  const rise = spansOf(qpsRise, `${at}.seconds.qpsRise`, SECONDS_KEPT_MS);
  const newUsualAfterMs = durationMs(qpsRise.newUsualAfter, `${at}.seconds.qpsRise.newUsualAfter`);
  if (newUsualAfterMs < rise.baselineMs) {
    throw new InvalidArgumentError(
      `${at}.seconds.qpsRise.newUsualAfter`,
      qpsRise.newUsualAfter,
      `at least baseline, ${rise.baselineMs / SECOND_MS} s`,
    );
  }
  const errors = windowsOf(errorRate, `${at}.seconds.errorRate`);
  const aboveMs = durationMs(p99Rise.above, `${at}.minutes.p99Rise.above`);
  const of = (name: FigureRuleName, kinds: readonly SeriesKind[]) => ({
    ...{ id: name, everyMs: EVERY_MS[name], kinds },
    ...common,
  });
  const p99 = spansOf(p99Rise, `${at}.minutes.p99Rise`, TIMES_KEPT_MS, MINUTE_MS);
  const denials = spansOf(denialRise, `${at}.minutes.denialRise`, TIMES_KEPT_MS);
  const peakAt = `${at}.hours.peak`;
  const rules: readonly [boolean, Rule][] = [
    [
      qpsRise.enabled,
      { ...qpsRise, ...of('qpsRise', REQUESTS), ...rise, newUsualAfterMs, name: 'qpsRise' },
    ],
    [
      errorRate.enabled,
      { ...errorRate, ...of('errorRate', ANSWERS), ...errors, name: 'errorRate' },
    ],
    [p99Rise.enabled, { ...p99Rise, ...of('p99Rise', ANSWERS), ...p99, aboveMs, name: 'p99Rise' }],
    [
      denialRise.enabled,
      { ...denialRise, ...of('denialRise', REQUESTS), ...denials, name: 'denialRise' },
    ],
    [
      slowCalls.enabled,
      {
        ...{ ...slowCalls, ...of('slowCalls', CALLS), name: 'slowCalls' },
        windowMs: within(
          slowCalls.window,
          `${at}.minutes.slowCalls.window`,
          SECOND_MS,
          TIMES_KEPT_MS,
        ),
      },
    ],
    [
      peak.enabled,
      {
        ...{ ...peak, ...of('peak', TOKENS), name: 'peak' },
        windowMs: within(peak.window, `${peakAt}.window`, HOUR_MS, HOURS_KEPT_MS),
        horizonMs: durationMs(peak.horizon, `${peakAt}.horizon`),
      },
    ],
  ];
  return [
    ...rules.map(([isOn, rule]) => ({ isOn, rule })),
    ...degradedRules(options, common, `${at}.minutes.degraded`),
  ];
}

const LEVEL_SEVERITY: Readonly<Record<Degraded['level'], Severity>> = {
  ...{ 1: 'info', 2: 'info', 3: 'warning', 4: 'critical' },
};

function degradedRules({ minutes }: AlertsOptions, common: Common, at: string): Switched[] {
  const { enabled, severity, minAnswers, window, ...shares } = minutes.degraded;
  const windowMs = within(window, `${at}.window`, SECOND_MS, MINUTES_KEPT_MS);
  return ([1, 2, 3, 4] as const).map((level) => ({
    isOn: enabled,
    rule: {
      ...common,
      ...{ name: 'degraded', id: `degraded.level${level}`, level, windowMs, minAnswers },
      ...{ severity: severity ?? LEVEL_SEVERITY[level], above: shares[`level${level}`] },
      ...{ everyMs: EVERY_MS.degraded, kinds: ANSWERS },
    },
  }));
}

function stateRules({ states }: AlertsOptions, common: Common, at: string): Switched[] {
  const { relapse, ...others } = states;
  const of = (name: StateRuleName, severity: Severity, afterMs: number): Held => ({
    ...{ ...common, name, id: name, severity, afterMs, everyMs: SECOND_MS, kinds: [] },
  });
  const held = Object.entries(others) as [Exclude<StateRuleName, 'relapse'>, HeldOptions][];
  const windowMs = durationMs(relapse.window, `${at}.states.relapse.window`);
  return [
    ...held.map(([name, { enabled, severity, after }]) => {
      return { isOn: enabled, rule: of(name, severity, durationMs(after, `${at}.${name}`)) };
    }),
    {
      isOn: relapse.enabled,
      rule: { ...of('relapse', relapse.severity, 0), times: relapse.times, windowMs },
    },
  ];
}

/** A window, and the time before it that says what is usual: it is longer, and both are kept. */
function spansOf(
  { window, baseline }: { readonly window: Duration; readonly baseline: Duration },
  at: string,
  longestMs: number,
  leastMs = SECOND_MS,
): { readonly windowMs: number; readonly baselineMs: number } {
  const windowMs = within(window, `${at}.window`, leastMs, longestMs);
  const baselineMs = durationMs(baseline, `${at}.baseline`);
  const mostMs = MINUTES_KEPT_MS - windowMs - MINUTE_MS;
  if (baselineMs > windowMs && baselineMs >= MINUTE_MS && baselineMs <= mostMs) {
    return { windowMs, baselineMs };
  }
  const expected = `a duration longer than window, from 1 to ${Math.floor(mostMs / MINUTE_MS)} min`;
  throw new InvalidArgumentError(`${at}.baseline`, baseline, expected);
}

function windowsOf(
  { window, longWindow }: { readonly window: Duration; readonly longWindow: Duration },
  at: string,
): { readonly windowMs: number; readonly longWindowMs: number } {
  const windowMs = within(window, `${at}.window`, SECOND_MS, TIMES_KEPT_MS);
  const longWindowMs = within(longWindow, `${at}.longWindow`, SECOND_MS, MINUTES_KEPT_MS);
  if (longWindowMs > windowMs) return { windowMs, longWindowMs };
  const expected = `longer than window, ${windowMs / SECOND_MS} s`;
  throw new InvalidArgumentError(`${at}.longWindow`, longWindow, expected);
}

function within(value: Duration, at: string, leastMs: number, mostMs: number): number {
  const ms = durationMs(value, at);
  if (ms >= leastMs && ms <= mostMs) return ms;
  const expected = `a duration from ${leastMs / SECOND_MS} s to ${mostMs / MINUTE_MS} min`;
  throw new InvalidArgumentError(at, value, expected);
}

/** The schema describes each field; the first that it does not like is the fault. */
function checkForm(input: unknown, at: string): void {
  const [fault] = alertsSchema.faults(input);
  if (fault === undefined) return;
  const field = [at, ...fault.at].join('.');
  if (fault.kind === 'unknown') {
    throw new UnknownOptionError(`${field}.${fault.names[0]}`, fieldsAt(fault.at));
  }
  let value = input;
  for (const segment of fault.at) value = (value as Record<string, unknown>)[segment];
  throw new InvalidArgumentError(
    field,
    fault.kind === 'name' ? fault.at.at(-1) : value,
    fault.expected,
  );
}

/** The fields that there are at a place. */
function fieldsAt(path: readonly (string | number)[]): string[] {
  let shape: Shape = alertsSchema.shape;
  for (const name of path) {
    const field = shape[name];
    const below = field instanceof Field ? field.of : field;
    if (below instanceof Named && below.of instanceof Group)
      return Object.keys(below.of.shape as Shape);
    if (below instanceof Group) shape = below.shape as Shape;
  }
  return Object.keys(shape);
}

/** The given fields over the defaults, at every depth. */
function overDefaults<T extends object>(defaults: T, input: object): T {
  for (const [name, value] of Object.entries(withoutUndefined(input)) as [string, unknown][]) {
    const own = defaults[name as keyof T];
    if (typeof own === 'object' && own !== null) overDefaults(own, value as object);
    else Object.assign(defaults, { [name]: value });
  }
  return defaults;
}
