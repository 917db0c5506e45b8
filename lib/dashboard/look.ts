import { type ConfigDocument } from '../config/schema/document.schema.js';
import { tighter, type Decision } from '../limiter/decision.js';
import { type RateLimiter } from '../limiter/rate-limiter.js';
import { keyText, type KeyOption } from '../limits/key-resolver.js';
import { namedKeys } from '../limits/named-key.js';
import { figure } from '../observability/figures.js';
import { type ShownDenial } from '../observability/limited.js';
import { type Looked, type LookedAt, type NotLookedAt } from './frame.js';

const MOST_POLICIES = 20;
const MOST_TIERS = 8;

export interface LookDeps {
  readonly limiter: RateLimiter;
  readonly document: ConfigDocument;
  readonly ipv6Prefix?: number | undefined;
  /** Those who are listed as turned away. */
  readonly limited: readonly ShownDenial[];
  /** A key as the list has it. */
  readonly shownKey: (key: string) => string;
}

/** Which policies would turn a caller away now, and what the list knows of it; nothing is taken. */
export async function lookAt(deps: LookDeps, text: string): Promise<Looked> {
  const { limiter, document, ipv6Prefix, limited, shownKey } = deps;
  const { policies = {} } = document;
  const named = limited.filter(({ who }) => who === text);
  const isKey = named.some(({ kind }) => kind === 'key');
  // No bucket can be found by the hash of its key.
  if (isKey && shownKey(text) !== text) {
    return { said: [...named.map(denialText), ONLY_HASH].join(' '), policies: [], others: [] };
  }
  const keysUnder = (policy: string): readonly string[] => {
    const kind = policies[policy]?.key;
    const isList = Array.isArray(kind) && kind.length > 1;
    const isListed = named.some((one) => one.policy === policy);
    return isListed ? [text] : namedKeys(kind, isList ? text.split(/\s+/) : [text], ipv6Prefix);
  };
  const denies = ({ policy, who }: ShownDenial): boolean =>
    policy !== undefined && keysUnder(policy).some((key) => shownKey(key) === who);
  const denying = new Set(limited.filter(denies).map(({ policy }) => policy));
  const names = limiter.policyNames();
  const [first, rest] = [true, false].map((is) => names.filter((name) => denying.has(name) === is));
  const asked = [...first!, ...rest!].slice(0, MOST_POLICIES);
  const [looked, others]: [Promise<LookedAt | undefined>[], NotLookedAt[]] = [[], []];
  for (const policy of asked) {
    const [key, ...less] = keysUnder(policy);
    if (key === undefined) {
      others.push({ policy, takes: keyText(policies[policy]?.key as KeyOption) });
    } else looked.push(lookUnder(limiter, policy, key));
    looked.push(...less.map(async (one) => ifUsed(await lookUnder(limiter, policy, one))));
  }
  const found = (await Promise.all(looked)).filter((one) => one !== undefined);
  const isGlobal = ({ policy }: LookedAt): boolean => policies[policy]?.key === 'global';
  const own = found.filter((one) => !isGlobal(one));
  const listed = limited.filter((one) =>
    one.kind === 'app'
      ? one.who === text
      : own.some(({ policy, key }) => policy === one.policy && shownKey(key) === one.who),
  );
  const said = [
    ...listed.map(denialText),
    bucketsText(found, own, listed.length > 0),
    restText(names.length - asked.length, names.length),
  ];
  return { said: said.filter(Boolean).join(' '), policies: found, others };
}

const ONLY_HASH =
  'Only its hash is listed, so its bucket cannot be looked at: type the key itself.';

function denialText({ kind, policy, denied, why }: ShownDenial): string {
  const times = `${denied === 1 ? 'once' : `${figure(denied)} times`} in the last minute`;
  if (kind === 'app') return `The app of this name was denied ${times}: ${why}.`;
  return `${policy} denied it ${times}: ${why}.`;
}

const restText = (rest: number, all: number): string =>
  rest === 0 ? '' : `${figure(rest)} of ${figure(all)} policies were not asked.`;

/** That somebody is named so is not likely: only a bucket that was used says so. */
const ifUsed = (one: LookedAt | undefined): LookedAt | undefined =>
  one !== undefined && one.remaining < one.limit ? one : undefined;

/** A bucket that nobody has used is full, as is that of a name which was never there. */
function bucketsText(
  found: readonly LookedAt[],
  own: readonly LookedAt[],
  isListed: boolean,
): string {
  if (found.some(({ allowed }) => !allowed)) return '';
  const isUnused = own.length > 0 && own.every(({ remaining, limit }) => remaining >= limit);
  if (isUnused && !isListed) {
    return 'Nothing is known of it: it has not asked lately, or its key is another.';
  }
  const asked = new Set(found.map(({ policy }) => policy)).size;
  return asked === 0
    ? 'No policy could be asked.'
    : `No policy turns it away now: it has tokens of all ${asked} that were asked.`;
}

/** The tier of a caller is not known here: the one with the least left is the one that is used. */
async function lookUnder(
  limiter: RateLimiter,
  policy: string,
  key: string,
): Promise<LookedAt | undefined> {
  const { tiers = new Map<string, unknown>() } = limiter.policy(policy) ?? {};
  const names = [undefined, ...[...tiers.keys()].slice(0, MOST_TIERS)];
  try {
    const peek = async (tier: string | undefined): Promise<[string | undefined, Decision]> => {
      return [tier, await limiter.peek({ policy, key, ...(tier !== undefined && { tier }) })];
    };
    const all = await Promise.all(names.map(peek));
    const [tier = 'default', decision] = all.reduce((one, other) =>
      tighter(one[1], other[1]) === one[1] ? one : other,
    );
    const { allowed, remaining, limit, retryAfterMs, resetMs, source } = decision;
    return { policy, key, tier, allowed, remaining, limit, retryAfterMs, resetMs, source };
  } catch {
    // A policy whose requests bring their figures along cannot be asked without them.
    return undefined;
  }
}
