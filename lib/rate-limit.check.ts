import { InvalidArgumentError, UnknownAppError } from './common/errors.js';
import {
  oneOf,
  plainObject,
  rejectUnknown,
  wholeAbove0,
  withoutUndefined,
} from './common/validate.js';
import { RateLimitModuleOptions, type RateLimitModuleInput } from './rate-limit.options.js';
import { HeaderOptions } from './transports/http/rate-limit-headers.js';

const KNOWN_OPTIONS = [
  ...Object.keys(new RateLimitModuleOptions()),
  ...['store', 'quota', 'app', 'apply', 'user', 'problemBase', 'nodeId', 'clock'],
];
const KNOWN_HEADERS = Object.keys(new HeaderOptions());
const IPV6_BITS = 128;

/** What the limiter looks at is checked by the limiter; everything else is checked here. */
export function checkOptions(input: RateLimitModuleInput): RateLimitModuleOptions {
  plainObject('options', input, 'an object');
  rejectUnknown('options', input, KNOWN_OPTIONS);
  const options = Object.assign(new RateLimitModuleOptions(), withoutUndefined(input));
  plainObject('policies', options.policies, 'an object of policies by name');
  wholeAbove0('ipv6Prefix', options.ipv6Prefix, IPV6_BITS);
  if (options.user !== undefined && typeof options.user !== 'function') {
    throw new InvalidArgumentError('user', options.user, 'a function');
  }
  options.headers = checkHeaders(options.headers);
  checkApp(options);
  checkApply(options);
  return options;
}

function checkHeaders(input: Partial<HeaderOptions>): HeaderOptions {
  plainObject('headers', input, 'an object');
  rejectUnknown('headers', input, KNOWN_HEADERS);
  const headers = Object.assign(new HeaderOptions(), withoutUndefined(input));
  oneOf('headers.draft', headers.draft, ['draft-10', 'off']);
  for (const [name, value] of Object.entries({ ...headers, draft: false })) {
    if (typeof value !== 'boolean') {
      throw new InvalidArgumentError(`headers.${name}`, value, 'true or false');
    }
  }
  return headers;
}

function checkApp({ app, quota }: RateLimitModuleOptions): void {
  if ((quota === undefined) !== (app === undefined)) {
    const [has, lacks] = app === undefined ? ['quota', 'app'] : ['app', 'quota'];
    throw new InvalidArgumentError(lacks, undefined, `to be there beside '${has}'`);
  }
  if (quota === undefined || typeof app === 'function') return;
  const known = Object.keys(quota.apps ?? {});
  if (!known.includes(app!)) throw new UnknownAppError(app, known);
}

function checkApply({ apply, quota }: RateLimitModuleOptions): void {
  if (apply === undefined) return;
  if (apply === 'quota') {
    if (quota !== undefined) return;
    throw new InvalidArgumentError('apply', apply, "a list of policies: there is no 'quota'");
  }
  const isList = Array.isArray(apply) && apply.every((name) => typeof name === 'string');
  if (!isList) throw new InvalidArgumentError('apply', apply, "a list of policies, or 'quota'");
}
