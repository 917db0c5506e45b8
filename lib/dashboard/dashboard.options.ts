import { type CanActivate, type ModuleMetadata, type Type } from '@nestjs/common';
import { InvalidArgumentError, RateLimitError } from '../common/errors.js';
import { plainObject, rejectUnknown, wholeAbove0, withoutUndefined } from '../common/validate.js';

/** A guard of Nest: a class, which is injected, or an instance. */
export type DashboardGuard = CanActivate | Type<CanActivate>;

/** A button of the application's own on the page. */
export interface DashboardAction {
  /** On the button. */
  readonly name: string;
  /** One sentence: what it does, and where to look. */
  readonly text: string;
  /** An address with more, such as that of the code. */
  readonly link?: string;
  /** Resolves to what is told then, in one sentence. */
  readonly run: () => string | void | Promise<string | void>;
}

/** The options of the dashboard. The initial values are the defaults. */
export class DashboardOptions {
  /** Where the page is, below the application's prefix: `ops/limits`. */
  path!: string;
  /** The guard of everybody who looks. */
  guard!: DashboardGuard;
  /** A second guard, of everybody who changes limits. Without it nothing can be changed from the page. */
  write?: { readonly guard: DashboardGuard };
  /** Origins beside the page's own that may send changes, such as `https://ops.example.com`. */
  origins: readonly string[] = [];
  /** Browsers that are kept up to date at once; the next one is told to come back later. */
  maxViewers = 100;
  /** Buttons of the application's own, on top of the page; for whoever may change limits. */
  actions: readonly DashboardAction[] = [];
  /** Modules with what the guards inject. */
  imports: NonNullable<ModuleMetadata['imports']> = [];
}

/** The options of `RateLimitDashboardModule.forRoot`. */
export type DashboardInput = Pick<DashboardOptions, 'path' | 'guard'> & Partial<DashboardOptions>;

/** The page shows who is limited, so somebody has to say who may see that. */
export class DashboardGuardMissingError extends RateLimitError {
  readonly code = 'DASHBOARD_GUARD_MISSING';

  constructor(readonly field: string) {
    super(
      `RateLimitDashboardModule: ${field} is missing. The dashboard shows who is limited and can change limits, ` +
        'so it is not mounted without a guard. Give a CanActivate of yours, sharedToken(process.env.TOKEN), ' +
        'or loopbackOnly() for development',
    );
  }
}

const KNOWN = [...Object.keys(new DashboardOptions()), 'path', 'guard', 'write'];
const SEGMENT = /^[\w.~-]+$/;
const MOST_VIEWERS = 10_000;

/** The options with their defaults; the path has no slash at either end. */
export function checkDashboard(input: DashboardInput): DashboardOptions {
  plainObject('RateLimitDashboardModule', input, 'an object with path and guard');
  rejectUnknown('RateLimitDashboardModule', input, KNOWN);
  const options = Object.assign(new DashboardOptions(), withoutUndefined(input));
  options.path = checkedPath(options.path);
  mustBeGuard('guard', options.guard);
  if (options.write !== undefined) {
    plainObject('write', options.write, 'an object with guard');
    rejectUnknown('write', options.write, ['guard']);
    mustBeGuard('write.guard', options.write.guard);
  }
  for (const action of options.actions) checkAction(action);
  if (options.actions.length > 0 && options.write === undefined) {
    throw new DashboardGuardMissingError('write.guard, which actions need,');
  }
  wholeAbove0('maxViewers', options.maxViewers, MOST_VIEWERS);
  for (const origin of options.origins) checkOrigin(origin);
  return options;
}

function checkedPath(path: unknown): string {
  const bare = typeof path === 'string' ? path.replace(/^\/+|\/+$/g, '') : '';
  if (bare !== '' && bare.split('/').every((segment) => SEGMENT.test(segment))) return bare;
  throw new InvalidArgumentError('path', path, "a path without parameters, such as 'ops/limits'");
}

function mustBeGuard(field: string, guard: unknown): void {
  if (guard === undefined || guard === null) throw new DashboardGuardMissingError(field);
  const { canActivate } = (
    typeof guard === 'function' ? (guard.prototype as object) : guard
  ) as Partial<CanActivate>;
  if (typeof canActivate === 'function') return;
  throw new InvalidArgumentError(field, guard, 'a class or an object with canActivate(context)');
}

function checkOrigin(origin: unknown): void {
  if (typeof origin === 'string' && URL.canParse(origin) && new URL(origin).origin === origin)
    return;
  throw new InvalidArgumentError(
    'origins',
    origin,
    'origins, such as https://ops.example.com, without a path',
  );
}

function checkAction(action: unknown): void {
  const { name, text, link, run } = (action ?? {}) as Partial<DashboardAction>;
  const isText = (one: unknown): boolean => typeof one === 'string' && one !== '';
  // Anything but these would be a script.
  const isLink = link === undefined || /^https?:\/\//.test(link);
  if (isText(name) && isText(text) && isLink && typeof run === 'function') return;
  const expectation = '{ name, text, run, link? }, where link begins with http:// or https://';
  throw new InvalidArgumentError('actions', action, expectation);
}
