import { plainObject, rejectUnknown, wholeAbove0 } from '../common/validate.js';
import { checkPolicy, type CheckedPolicy, type PolicyInput } from './policy-options.js';
import { type QuotaOptions } from './quota-options.js';

/** All limits as they are to be from one instant on. */
export interface LimitsChange {
  /** Which state of the configuration this is. A change that is not later than the last is ignored. */
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
  wholeAbove0('change.revision', change.revision);
  plainObject('policies', change.policies, 'an object of policies by name');
  return Object.entries(change.policies).map(([name, policy]) => checkPolicy(name, policy));
}
