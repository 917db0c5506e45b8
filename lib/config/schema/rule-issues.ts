import { InvalidArgumentError, type ConfigIssue } from '../../common/errors.js';
import { remembered } from '../../common/immutable.js';
import { checkPolicy, type PolicyInput } from '../../limiter/policy-options.js';
import { checkQuota, type QuotaOptions } from '../../limiter/quota-options.js';
import { isObject } from '../document/json.js';
import { type PathSegment } from '../document/path.js';
import { type ConfigDocument, type PolicyDocument } from './document.schema.js';
import { issue } from './issue.js';
import { isEarlyKey } from '../../limits/early-keys.js';
import { limitsOf } from './limits-of.js';
import { otherRules } from './other-rules.js';

type Path = readonly PathSegment[];

/** Whether the part of the document at a place has the right form, so that rules make sense of it. */
export type IsSound = (at: Path) => boolean;

/** Of a document that has the right form everywhere. */
export const ALL_SOUND: IsSound = () => true;

/**
 * Everything that is wrong with an effective document although its form is right. Of what a known
 * document has as well, nothing is.
 */
export function ruleIssues(
  document: ConfigDocument,
  isSound: IsSound,
  known: ConfigDocument = {},
): ConfigIssue[] {
  const sound = isSound === ALL_SOUND ? document : soundPart(document, isSound);
  const { policies, quota } = limitsOf(sound, known);
  const isWhole = isSound(['apps']) && isSound(['cluster']);
  const issues: ConfigIssue[] = [];
  for (const name of Object.keys(policies)) {
    const policy = sound.policies![name]!;
    if (policy === known.policies?.[name]) continue;
    issues.push(...policyIssues(policies[name]!, name), ...routeIssues(policy, name));
  }
  if (quota !== undefined) issues.push(...quotaIssues(quota, isWhole));
  issues.push(...otherRules(sound));
  return issues;
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

function policyIssues(policy: PolicyInput, name: string): readonly ConfigIssue[] {
  const prefix = `policies.${name}`;
  if (faultOf(() => checkPolicy(name, policy)) === undefined) return [];
  return faultsOf(
    (input) => checkPolicy(name, input),
    policy,
    (field) => segmentsBelow(prefix, ['policies', name], field),
    2,
  );
}

/** How a policy is applied is compiled where requests are; what can be seen beforehand is seen here. */
function routeIssues(policy: PolicyDocument, name: string): readonly ConfigIssue[] {
  const { early, key, anonymous } = policy;
  const at = ['policies', name];
  const issues: ConfigIssue[] = [];
  if (early === true && key !== undefined && !isEarlyKey(key)) {
    issues.push(issue([...at, 'early'], early, 'a key of ip, header or global beside it'));
  }
  if (anonymous === 'user') {
    issues.push(issue([...at, 'anonymous'], anonymous, 'a key that needs no user'));
  }
  return issues;
}

/** Each app by itself first: the sum of all says nothing while one of them is wrong. */
const quotaIssues = remembered((quota: QuotaOptions, isWhole: boolean): readonly ConfigIssue[] => {
  const alone = Object.keys(quota.apps).flatMap((name) =>
    faultsOf(
      (app) => checkQuota({ apps: { [name]: app } }),
      quota.apps[name]!,
      (field) => segmentsBelow(`quota.apps.${name}`, ['apps', name], field),
      2,
    ),
  );
  const isReady = isWhole && alone.length === 0;
  return isReady ? faultsOf(checkQuota, quota, quotaSegments, 0) : alone;
});

const LOCAL_FIELDS = /^quota\.(?:cluster|local)\.(\w+)$/;

/** Where in the document an option of the quota stands. */
function quotaSegments(field: string): Path {
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

function segmentsBelow(prefix: string, at: Path, field: string): Path {
  const rest = field.startsWith(`${prefix}.`) ? field.slice(prefix.length + 1) : '';
  if (rest === '') return at;
  // Names of tiers may have dots of their own.
  const tier = /^tiers\.(.+?)(?:\.(rate|period|burst))?$/.exec(rest);
  if (tier === null) return [...at, rest];
  return [...at, 'tiers', tier[1]!, ...(tier[2] === undefined ? [] : [tier[2]])];
}

/**
 * The checks stop at the first fault. So the field at fault is taken out and they run again, until
 * they pass or say nothing new.
 */
function faultsOf<T extends object>(
  check: (input: T) => unknown,
  input: T,
  segmentsOf: (field: string) => Path,
  depth: number,
): ConfigIssue[] {
  const issues: ConfigIssue[] = [];
  let rest = input;
  for (;;) {
    const fault = faultOf(() => check(rest));
    // What is missing after something was taken out is missing only because of that.
    if (fault === undefined || (fault.value === undefined && issues.length > 0)) return issues;
    const at = segmentsOf(fault.field);
    issues.push(issue(at, fault.value, fault.expectation));
    const less = without(rest, at.slice(depth));
    if (less === undefined || depth === 0) return issues;
    rest = less as T;
  }
}

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
function without(object: object, [name, ...rest]: Path): object | undefined {
  if (name === undefined || !Object.hasOwn(object, name)) return undefined;
  const { [name]: value, ...others } = object as Record<PathSegment, unknown>;
  // A tier may be a mere rate; then all of it goes.
  if (rest.length === 0 || !isObject(value)) return others;
  const less = without(value, rest);
  return less === undefined ? undefined : { ...others, [name]: less };
}
