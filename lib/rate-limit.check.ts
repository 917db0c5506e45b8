import { IPV6_BITS, LEAST_IPV6_BITS } from './common/address.js';
import { InvalidArgumentError, UnknownAppError } from './common/errors.js';
import { isPlanned, notAvailable } from './common/not-available.js';
import { isAsyncFunction } from './common/promises.js';
import { oneOf, plainObject, rejectUnknown, withoutUndefined } from './common/validate.js';
import { checkConfigOptions } from './config/config.options.js';
import { NOT_ASYNC } from './limits/key-resolver.js';
import { rejectThrottlerOptions } from './limits/throttler-words.js';
import { checkDegradeModule } from './degradation/degrade-module-options.js';
import { checkOverload } from './overload/settings.js';
import { checkAlerts } from './observability/alerts/rules.js';
import { checkMonitorOptions } from './observability/monitor-options.js';
import { RateLimitModuleOptions, type RateLimitModuleInput } from './rate-limit.options.js';
import { GrpcOptions } from './transports/grpc/grpc-status.js';
import { HeaderOptions } from './transports/shared/rate-limit-headers.js';
import { KafkaOptions } from './transports/rpc/kafka-waiting.js';
import { WebsocketOptions } from './transports/ws/ws.transport.js';

const KNOWN_OPTIONS = [
  ...Object.keys(new RateLimitModuleOptions()),
  ...['store', 'quota', 'app', 'apply', 'user', 'rejection', 'problemBase', 'nodeId', 'clock'],
  ...['configVersion', 'service', 'overload', 'tier', 'alerts'],
];

/** The limiter and Protection check their own options; all others are checked here. */
export function checkOptions(
  given: RateLimitModuleInput,
  overrides: RateLimitModuleInput = {},
): RateLimitModuleOptions {
  rejectThrottlerOptions('forRoot', given);
  plainObject('options', given, 'an object');
  const input = { ...given, ...overrides };
  rejectPlanned(input);
  rejectUnknown('options', input, KNOWN_OPTIONS);
  const options = Object.assign(new RateLimitModuleOptions(), withoutUndefined(input));
  plainObject('policies', options.policies, 'an object of policies by name');
  plainObject('protection', options.protection, 'an object of resources by name');
  if (typeof options.enabled !== 'boolean') {
    throw new InvalidArgumentError('enabled', options.enabled, 'true or false');
  }
  checkIpv6Prefix(options.ipv6Prefix);
  for (const name of ['user', 'rejection', 'tier'] as const) {
    if (options[name] === undefined || typeof options[name] === 'function') continue;
    throw new InvalidArgumentError(name, options[name], 'a function');
  }
  if (isAsyncFunction(options.rejection)) {
    throw new InvalidArgumentError('rejection', options.rejection, NOT_ASYNC);
  }
  if (isAsyncFunction(options.tier))
    throw new InvalidArgumentError('tier', options.tier, NOT_ASYNC);
  if (options.overload !== undefined) checkOverload(options.overload);
  if (options.alerts !== undefined) checkAlerts(options.alerts);
  if (isAsyncFunction(options.app)) throw new InvalidArgumentError('app', options.app, NOT_ASYNC);
  options.service = serviceOf(options);
  options.config = checkConfigOptions(options.config);
  checkVersion(options.configVersion);
  options.headers = checkHeaders(options.headers);
  options.grpc = filled('grpc', options.grpc, new GrpcOptions());
  options.kafka = filled('kafka', options.kafka, new KafkaOptions());
  options.websocket = checkWebsocket(options.websocket);
  checkDegradeModule(options.degradation);
  options.monitor = checkMonitorOptions(options.monitor) ?? false;
  checkApp(options);
  checkApply(options);
  return options;
}

function rejectPlanned(input: object): void {
  const name = Object.keys(input).find(isPlanned);
  if (name === undefined) return;
  const field = `options.${name}`;
  throw new InvalidArgumentError(field, undefined, 'nothing', `${field}: ${notAvailable(name)}`);
}

/** The given options over the defaults; unknown ones are an error. */
function filled<T extends object>(at: string, input: Partial<T>, defaults: T): T {
  plainObject(at, input, 'an object');
  rejectUnknown(at, input, Object.keys(defaults));
  return Object.assign(defaults, withoutUndefined(input));
}

function serviceOf({ service, app }: RateLimitModuleOptions): string | undefined {
  if (service !== undefined) nameOf('service', service);
  return service ?? (typeof app === 'string' ? app : undefined);
}

function checkVersion(version: number | undefined): void {
  if (version === undefined || (Number.isSafeInteger(version) && version >= 0)) return;
  throw new InvalidArgumentError('configVersion', version, 'a whole number from 0 on');
}

function nameOf(at: string, value: unknown): void {
  if (typeof value === 'string' && value !== '') return;
  throw new InvalidArgumentError(at, value, 'a text that is not empty');
}

function checkIpv6Prefix(bits: number): void {
  if (Number.isInteger(bits) && bits >= LEAST_IPV6_BITS && bits <= IPV6_BITS) return;
  const range = `a whole number from ${LEAST_IPV6_BITS} to ${IPV6_BITS}`;
  throw new InvalidArgumentError('ipv6Prefix', bits, range);
}

function checkWebsocket(input: Partial<WebsocketOptions>): WebsocketOptions {
  const options = filled('websocket', input, new WebsocketOptions());
  const { closeAfter } = options;
  if (closeAfter === Infinity || (Number.isInteger(closeAfter) && closeAfter > 0)) return options;
  throw new InvalidArgumentError('websocket.closeAfter', closeAfter, 'a whole number from 1 on');
}

function checkHeaders(input: Partial<HeaderOptions>): HeaderOptions {
  const headers = filled('headers', input, new HeaderOptions());
  oneOf('headers.draft', headers.draft, ['draft-10', 'off']);
  for (const [name, value] of Object.entries({ ...headers, draft: false })) {
    if (typeof value !== 'boolean') {
      throw new InvalidArgumentError(`headers.${name}`, value, 'true or false');
    }
  }
  return headers;
}

function checkApp({ app, quota }: RateLimitModuleOptions): void {
  const known = Object.keys(quota?.apps ?? {});
  if ((quota === undefined) !== (app === undefined)) {
    const whose = `one of ${known.join(', ')}, or a function that says so for each request`;
    throw app === undefined
      ? new InvalidArgumentError('app', app, `to be there beside 'quota': ${whose}`)
      : new InvalidArgumentError('quota', quota, "to be there beside 'app'");
  }
  if (quota === undefined || typeof app === 'function') return;
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
