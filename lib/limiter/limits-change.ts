import { InvalidArgumentError } from '../common/errors.js';
import { plainObject, rejectUnknown } from '../common/validate.js';
import { checkPolicy, type CheckedPolicy, type PolicyInput } from './policy-options.js';
import { type QuotaOptions } from './quota-options.js';

/** All limits as they are to be from one instant on. */
export interface LimitsChange {
  /** Which state of the configuration this is: 0 as long as there is only what the process brought
   * along. Once there was a later one, a change that is not later still is ignored. */
  readonly revision: number;
  /** Every policy: one that is not here any more is removed. Those of `define` stay. */
  readonly policies: Readonly<Record<string, PolicyInput>>;
  readonly quota?: QuotaOptions;
}

const KNOWN: readonly (keyof LimitsChange)[] = ['revision', 'policies', 'quota'];

/** The policies of a change, checked as those of the options are. */
export function checkChange(change: LimitsChange): CheckedPolicy[] {
  plainObject('change', change, 'an object with a revision and policies');
  rejectUnknown('change', change, KNOWN);
  if (!Number.isSafeInteger(change.revision) || change.revision < 0) {
    throw new InvalidArgumentError('change.revision', change.revision, 'a whole number from 0 on');
  }
  plainObject('policies', change.policies, 'an object of policies by name');
  const { policies } = change;
  const checked: CheckedPolicy[] = [];
  for (const name of Object.keys(policies)) checked.push(checkPolicy(name, policies[name]!));
  return checked;
}
