import { durationMs, type Duration } from '../common/duration.js';
import { InvalidArgumentError } from '../common/errors.js';
import { plainObject, withoutUndefined } from '../common/validate.js';
import { type HealthProbe } from './core/contract.js';
import { checkDegradation, DegradationOptions, type DegradationInput } from './core/options.js';
import { type DefaultDeadlines } from './route-deadlines.js';

/** The options of the module, for every `@Degrade` without its own. The initial values are the defaults. */
export class DegradeModuleOptions extends DegradationOptions {
  /** A request that reads has its answer by then. */
  deadline: Duration = '2s';
  /** From then on the levels are tried while the handler still runs; it counts as slow. */
  slow: Duration = '1s';
  /**
   * Headers that mark a request as a caller's own, beside those that are known, such as `authorization`
   * or `x-session-*`. A `*` stands for any end.
   */
  credentialHeaders: readonly string[] = [];
  /** Checks of resources by name, in the place of requests that try them out. */
  probes: Readonly<Record<string, HealthProbe>> = {};
}

const NAME = /^(?!\*.*\*$)\*?[\w!#$%&'+.^`|~-]+\*?$/;

export type DegradeModuleInput = Partial<DegradeModuleOptions>;

export interface DegradeSettings {
  readonly deadlines: DefaultDeadlines;
  readonly probes: Readonly<Record<string, HealthProbe>>;
  readonly credentialHeaders: readonly string[];
  /** The options of the core, checked. */
  readonly core: DegradationInput;
}

export function checkDegradeModule(input: DegradeModuleInput, at = 'degradation'): DegradeSettings {
  plainObject(at, input, 'an object');
  const options = Object.assign(new DegradeModuleOptions(), withoutUndefined(input));
  const { deadline, slow, probes, credentialHeaders, ...rest } = options;
  const deadlineMs = durationMs(deadline, `${at}.deadline`);
  const slowMs = durationMs(slow, `${at}.slow`);
  if (slowMs >= deadlineMs) {
    throw new InvalidArgumentError(`${at}.slow`, slow, `less than the deadline, ${deadlineMs} ms`);
  }
  checkProbes(`${at}.probes`, probes);
  checkCredentialHeaders(`${at}.credentialHeaders`, credentialHeaders);
  plainObject(`${at}.recovery`, rest.recovery, 'an object');
  // A call for which the levels are tried is a slow one, unless the options have another figure.
  const core = { ...rest, recovery: { slow, ...withoutUndefined(rest.recovery) } };
  checkDegradation(core, at);
  return { deadlines: { deadlineMs, slowMs }, probes, credentialHeaders, core };
}

function checkCredentialHeaders(at: string, names: unknown): void {
  const isName = (name: unknown): boolean => typeof name === 'string' && NAME.test(name);
  if (Array.isArray(names) && names.every(isName)) return;
  throw new InvalidArgumentError(
    at,
    names,
    "a list of headers such as 'x-acme-pass', 'x-acme-*', '*-pass'",
  );
}

function checkProbes(at: string, probes: DegradeModuleOptions['probes']): void {
  plainObject(at, probes, 'an object of functions by resource');
  for (const [name, probe] of Object.entries(probes)) {
    if (typeof probe !== 'function') {
      throw new InvalidArgumentError(`${at}.${name}`, probe, 'a function');
    }
  }
}
