import { InvalidArgumentError } from '../common/errors.js';
import { isImmutable } from '../common/immutable.js';
import { plainObject, rejectUnknown } from '../common/validate.js';
import { checkPolicy, type PolicySettings, type PolicyFields } from './policy-options.js';
import { type QuotaOptions } from './quota-options.js';

/** All limits as they are to be from one instant on. */
export interface LimitsChange {
  /** Which state of the configuration this is: 0 as long as there is only what the process brought
   * along. Once there was a later one, a change that is not later still is ignored. */
  readonly revision: number;
  /** Every policy: one that is not here any more is removed. Those of `define` stay. */
  readonly policies: Readonly<Record<string, PolicyFields>>;
  readonly quota?: QuotaOptions;
  /** Policies of `define` that are to go as well; names that nothing has are none. */
  readonly removed?: readonly string[];
}

const KNOWN: readonly (keyof LimitsChange)[] = ['revision', 'policies', 'quota', 'removed'];

/** A change that was found right. */
export interface CheckedChange {
  readonly policies: LimitsChange['policies'];
  readonly checked: readonly PolicySettings[];
  readonly removed: readonly string[];
}

/**
 * The policies of a change, checked as those of the options are. Most are what they were in the change
 * before, and stand at the same place.
 */
export function checkChange(change: LimitsChange, before?: CheckedChange): CheckedChange {
  plainObject('change', change, 'an object with a revision and policies');
  rejectUnknown('change', change, KNOWN);
  if (!Number.isSafeInteger(change.revision) || change.revision < 0) {
    throw new InvalidArgumentError('change.revision', change.revision, 'a whole number from 0 on');
  }
  plainObject('policies', change.policies, 'an object of policies by name');
  const { policies, removed = [] } = change;
  if (!Array.isArray(removed)) {
    throw new InvalidArgumentError('change.removed', removed, 'a list of names');
  }
  const known = isImmutable(before?.policies) && isImmutable(policies) ? before : undefined;
  const checked = Object.keys(policies).map((name, place) => {
    const there = known?.checked[place];
    const isSame = there?.name === name && known!.policies[name] === policies[name];
    return isSame ? there : checkPolicy(name, policies[name]!);
  });
  return { policies, checked, removed };
}
