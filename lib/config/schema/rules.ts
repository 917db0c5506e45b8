import { InvalidArgumentError, type ConfigIssue } from '../../common/errors.js';
import { remembered } from '../../common/immutable.js';
import { checkDegradeModule } from '../../degradation/degrade-module-options.js';
import { checkPolicy, type PolicyFields } from '../../limiter/policy-options.js';
import { checkQuota, type QuotaOptions } from '../../limiter/quota-options.js';
import { isEarlyKey, needsUser } from '../../limits/key-resolver.js';
import { type AlertsInput } from '../../observability/alerts/alerts.schema.js';
import { checkAlerts } from '../../observability/alerts/rules.js';
import { checkOverload, type OverloadInput } from '../../overload/settings.js';
import { compileResource, type ResourceInput } from '../../protection/resource-options.js';
import { isObject, type DocumentPath } from '../document/json.js';
import { type ConfigDocument, type PolicyDocument } from './document.schema.js';
import { issue, unknownName } from './issue.js';
import { limitsOf } from './limits-of.js';

/** Whether the part of the document at a place has the right form, so that rules make sense of it. */
export type IsSound = (at: DocumentPath) => boolean;

/** Of a document that has the right form everywhere. */
export const ALL_SOUND: IsSound = () => true;

/**
 * Everything that is wrong with an effective document although its form is right. Each feature checks
 * its own section, with the very check that it applies to options from code.
 */
export function ruleIssues(document: ConfigDocument, isSound: IsSound): ConfigIssue[] {
  const sound = isSound === ALL_SOUND ? document : soundPart(document, isSound);
  const { policies, quota } = limitsOf(sound);
  const isWhole = isSound(['apps']) && isSound(['cluster']);
  const { degradation, overload, alerts, protection = {} } = sound;
  return [
    ...Object.keys(policies).flatMap((name) => [
      ...policyIssues(policies[name]!, name),
      ...routeIssues(sound.policies![name]!, name),
    ]),
    ...(quota === undefined ? [] : quotaIssues(quota, isWhole)),
    ...Object.keys(protection).flatMap((name) => [
      ...resourceIssues(protection[name]!, name),
      ...rateIssues(sound, name),
    ]),
    ...(degradation === undefined ? [] : degradationIssues(degradation)),
    ...(overload === undefined ? [] : overloadIssues(overload)),
    ...(alerts === undefined ? [] : alertIssues(alerts)),
  ];
}

/** Rules cannot make sense of what has the wrong form. */
function soundPart(document: ConfigDocument, isSound: IsSound): ConfigDocument {
  const parts = Object.entries(document).flatMap(([section, value]) => {
    if (isSound([section])) return [[section, value]];
    if (!BY_NAME.includes(section) || !isObject(value)) return [];
    const sound = Object.entries(value).filter(([name]) => isSound([section, name]));
    return [[section, Object.fromEntries(sound)]];
  });
  return Object.fromEntries(parts) as ConfigDocument;
}

/** Sections in which one entry may be wrong and the others right. */
const BY_NAME = ['policies', 'apps', 'protection'];

function policyIssues(policy: PolicyFields, name: string): ConfigIssue[] {
  return faultsOf(policy, {
    check: (input) => checkPolicy(name, input),
    prefix: `policies.${name}`,
    at: ['policies', name],
  });
}

/** Keys are compiled where requests are. A key that is a function of the code is not in the document. */
function routeIssues({ early, key, anonymous }: PolicyDocument, name: string): ConfigIssue[] {
  const at = ['policies', name];
  const issues: ConfigIssue[] = [];
  if (early === true && key !== undefined && !isEarlyKey(key)) {
    issues.push(issue([...at, 'early'], early, 'a key of ip, header or global beside it'));
  }
  if (anonymous === 'user' && key !== undefined && needsUser(key)) {
    issues.push(issue([...at, 'anonymous'], anonymous, 'a key that needs no user'));
  }
  return issues;
}

/** Each app by itself first: the sum of all says nothing while one of them is wrong. */
const quotaIssues = remembered((quota: QuotaOptions, isWhole: boolean): readonly ConfigIssue[] => {
  const alone = Object.keys(quota.apps).flatMap((name) =>
    faultsOf(quota.apps[name]!, {
      check: (app) => checkQuota({ apps: { [name]: app } }),
      prefix: `quota.apps.${name}`,
      at: ['apps', name],
    }),
  );
  if (!isWhole || alone.length > 0) return alone;
  const fault = faultOf(() => checkQuota(quota));
  return fault === undefined ? [] : [issueOf(fault, quotaSegments(fault.field))];
});

const LOCAL_FIELDS = /^quota\.(?:cluster|local)\.(\w+)$/;

/** Where in the document an option of the quota stands. */
function quotaSegments(field: string): DocumentPath {
  const local = LOCAL_FIELDS.exec(field)?.[1];
  if (local !== undefined) return ['cluster', local];
  switch (field) {
    case 'quota.maxCost':
      return ['cluster', 'maxCost'];
    case 'quota.clusterId':
      return ['cluster', 'id'];
    default:
      return ['apps'];
  }
}

function resourceIssues(input: ResourceInput, name: string): ConfigIssue[] {
  const prefix = `protection.${name}`;
  // A preset by its name has no fields; the schema knows the names.
  if (typeof input === 'string') return [];
  return faultsOf(input, {
    check: (options) => compileResource(prefix, options, ''),
    ...{ prefix, at: ['protection', name] },
  });
}

/** The policy that a resource's calls are charged to stands in the same document. */
function rateIssues({ protection, policies = {} }: ConfigDocument, name: string): ConfigIssue[] {
  const known = Object.keys(policies);
  const resource = protection?.[name];
  const rate = typeof resource === 'object' ? resource.rate : undefined;
  const policy = typeof rate === 'object' ? rate.policy : rate;
  if (typeof policy !== 'string' || known.includes(policy)) return [];
  const at = ['protection', name, 'rate', ...(typeof rate === 'object' ? ['policy'] : [])];
  return [unknownName(at, policy, known, 'the name of one of the policies')];
}

function degradationIssues(input: NonNullable<ConfigDocument['degradation']>): ConfigIssue[] {
  return faultsOf(input, {
    check: (options) => checkDegradeModule(options),
    ...{ prefix: 'degradation', at: ['degradation'] },
  });
}

function overloadIssues(input: NonNullable<ConfigDocument['overload']>): ConfigIssue[] {
  return faultsOf(input as OverloadInput, {
    check: (options) => checkOverload(options),
    ...{ prefix: 'overload', at: ['overload'] },
  });
}

function alertIssues(input: AlertsInput): ConfigIssue[] {
  return faultsOf(input, {
    check: (options) => checkAlerts(options),
    ...{ prefix: 'alerts', at: ['alerts'] },
  });
}

interface OptionsCheck<T> {
  readonly check: (input: T) => unknown;
  /** The beginning of the names of fields in errors of the check. */
  readonly prefix: string;
  /** Where the options stand in the document. */
  readonly at: DocumentPath;
}

/**
 * The checks stop at the first fault. So the field at fault is taken out and they run again, until
 * they pass or find nothing new.
 */
function faultsOf<T extends object>(input: T, { check, prefix, at }: OptionsCheck<T>) {
  const issues: ConfigIssue[] = [];
  let rest = input;
  for (;;) {
    const fault = faultOf(() => check(rest));
    // A field that is missing after another was taken out may be missing only because of that.
    if (fault === undefined || (fault.value === undefined && issues.length > 0)) return issues;
    const below = segmentsBelow(prefix, fault.field, rest);
    issues.push(issueOf(fault, [...at, ...below]));
    const less = without(rest, below);
    if (less === undefined) return issues;
    rest = less as T;
  }
}

/** The path of a field in the options: names of tiers and resources may have dots of their own. */
function segmentsBelow(prefix: string, field: string, options: object): string[] {
  const segments: string[] = [];
  let rest = field.startsWith(`${prefix}.`) ? field.slice(prefix.length + 1) : '';
  let here: unknown = options;
  while (rest !== '') {
    const left = rest;
    const names = isObject(here) ? Object.keys(here) : [];
    const matching = names.filter((one) => left === one || left.startsWith(`${one}.`));
    const name = matching.sort((a, b) => b.length - a.length)[0] ?? left;
    segments.push(name);
    here = isObject(here) ? here[name] : undefined;
    rest = left.slice(name.length + 1);
  }
  return segments;
}

const issueOf = ({ value, expectation }: InvalidArgumentError, at: DocumentPath): ConfigIssue =>
  issue(at, value, expectation);

function faultOf(check: () => unknown): InvalidArgumentError | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof InvalidArgumentError) return error;
    throw error;
  }
}

/** The object without the field at the path; undefined if there is none. */
function without(object: object, [name, ...rest]: readonly string[]): object | undefined {
  if (name === undefined || !Object.hasOwn(object, name)) return undefined;
  const { [name]: value, ...others } = object as Record<string, unknown>;
  // A tier may be a mere rate; then all of it goes.
  if (rest.length === 0 || !isObject(value)) return others;
  const less = without(value, rest);
  return less === undefined ? undefined : { ...others, [name]: less };
}
