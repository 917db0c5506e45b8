import { RequestMethod } from '@nestjs/common';
import { durationMs } from '../common/duration.js';
import { InvalidArgumentError } from '../common/errors.js';
import { isAsyncFunction } from '../common/promises.js';
import { type NamedHandler } from '../requests/by-handler.js';
import { plainObject, rejectUnknown } from '../common/validate.js';
import { DegradeMessage, degradeOf, type DegradeOptions } from './degrade-options.js';
import {
  EVENT,
  HANDLER_TYPE,
  MESSAGE_PATTERN,
  PASSTHROUGH,
  PATH,
  ROUTE_ARGUMENTS,
  SSE,
  VERB,
  type Class,
} from '../requests/nest-metadata.js';

const KNOWN: readonly (keyof DegradeOptions)[] = [
  ...(['resource', 'level1', 'level2', 'level3', 'level4', 'blockHandler', 'fallback'] as const),
  ...(['deadline', 'slow', 'shared', 'vary', 'principal', 'schemaVersion', 'field'] as const),
  ...(['coreFields', 'idempotent', 'revive', 'isFailure', 'warm', 'notice'] as const),
];
const METHOD_OPTIONS = ['level3', 'blockHandler', 'fallback'] as const;

/** The parameters `@Res()` and `@Next()` as Nest numbers them. */
const OWN_ANSWER = /^[12]:/;

/** The checks that need nothing but the options. */
export function checkDegradeOptions(at: string, options: DegradeOptions): void {
  plainObject(at, options, 'an object');
  rejectUnknown(at, options, KNOWN);
  for (const name of ['level1', 'level2'] as const) {
    const value = options[name];
    if (value !== undefined && value !== false) durationMs(value, `${at}.${name}`);
  }
  for (const name of ['deadline', 'slow'] as const) {
    if (options[name] !== undefined) durationMs(options[name], `${at}.${name}`);
  }
  for (const name of ['shared', 'idempotent'] as const) expect(at, options, name, 'boolean');
  for (const name of ['principal', 'revive', 'isFailure', 'warm'] as const) {
    expect(at, options, name, 'function');
    // Only a list of questions may be awaited: no caller waits meanwhile.
    if (name === 'warm' || !isAsyncFunction(options[name])) continue;
    throw new InvalidArgumentError(`${at}.${name}`, options[name], 'a function that is not async');
  }
  for (const name of ['resource', 'field', ...METHOD_OPTIONS] as const) {
    expect(at, options, name, 'string');
    if (options[name] === '') throw new InvalidArgumentError(`${at}.${name}`, '', 'a name');
  }
  checkNotice(`${at}.notice`, options.notice);
  for (const name of ['vary', 'coreFields'] as const) checkList(`${at}.${name}`, options[name]);
}

const NO_HANDLER =
  'a handler of HTTP, gRPC or messages; remove it: resolvers, gateways and services have no fallbacks';

/** Why a handler cannot be answered for; undefined if it can. */
export function whyNot(type: Class, handler: object, name: string): string | undefined {
  const isHttp = Reflect.hasMetadata(PATH, handler);
  if (!isHttp && !Reflect.hasMetadata(MESSAGE_PATTERN, handler)) {
    return NO_HANDLER;
  }
  if (Reflect.hasMetadata(SSE, handler)) return 'a handler with one answer, not @Sse()';
  if (Reflect.getMetadata(HANDLER_TYPE, handler) === EVENT) {
    return 'a handler that somebody waits for, not @EventPattern()';
  }
  if (isStream(handler)) return 'a call with one request, not a stream of them';
  if (isHttp && answersByItself(type, name)) {
    return 'a handler that returns its answer: use @Res({ passthrough: true })';
  }
  return undefined;
}

/** Options that would be of no use on a write, as they answer in its place. */
const ANSWERS = ['level1', 'level2', 'shared', 'warm', ...METHOD_OPTIONS] as const;

/**
 * The methods it names have to be there, and a write can have none of them. A write may inherit answers of its
 * class: they are meant for those beside it that read.
 */
export function checkRoute(
  at: string,
  type: Class,
  handler: object,
  options: DegradeOptions,
  own: DegradeOptions,
): void {
  for (const option of METHOD_OPTIONS) {
    const method = options[option];
    if (method === undefined) continue;
    const prototype = type.prototype as Record<string, unknown>;
    if (typeof prototype[method] !== 'function') {
      throw new InvalidArgumentError(`${at}.${option}`, method, `a method of ${type.name}`);
    }
  }
  if (options.warm !== undefined && options.level1 === false && options.level2 === false) {
    throw new InvalidArgumentError(`${at}.warm`, options.warm, 'none: levels 1 and 2 are left out');
  }
  if (isWrite(handler, options)) mustNotAnswer(at, own, 'this handler counts as a write');
}

/** Options of a class have to be of use to one of its handlers. */
export function checkClass(type: Class, handlers: readonly NamedHandler[]): void {
  const at = `@Degrade on ${type.name}`;
  const options = degradeOf(type)!;
  const reasons = handlers.map(({ handler, name }) => whyNot(type, handler, name));
  const fitting = handlers.filter((_, i) => reasons[i] === undefined);
  if (fitting.length === 0) {
    const what = reasons.find((reason) => reason !== NO_HANDLER) ?? NO_HANDLER;
    throw new InvalidArgumentError(at, undefined, what, `${at}: expected ${what}`);
  }
  const writes = ({ handler }: NamedHandler): boolean =>
    isWrite(handler, { ...options, ...degradeOf(handler) });
  if (fitting.every(writes)) mustNotAnswer(at, options, 'all its handlers count as writes');
}

function mustNotAnswer(at: string, options: DegradeOptions, why: string): void {
  const isFake = (name: (typeof ANSWERS)[number]): unknown => options[name];
  const fake = ANSWERS.find(isFake) ?? (isMessage(options.level4) ? undefined : 'level4');
  if (fake === undefined) return;
  throw new InvalidArgumentError(
    `${at}.${fake}`,
    options[fake],
    `no answer but level4: degradeMessage('…'), as ${why}; 'idempotent: true' says that it only reads`,
  );
}

function isMessage(level4: unknown): boolean {
  return level4 === undefined || typeof level4 === 'string' || level4 instanceof DegradeMessage;
}

/** In a store that others use as well a nameless service would find their answers, and they its own. */
export function checkService(
  at: string,
  handler: object,
  { level1, idempotent }: DegradeOptions,
  service: string | undefined,
): void {
  if (service !== undefined || level1 === false || isWrite(handler, { idempotent })) return;
  throw new InvalidArgumentError(
    'service',
    service,
    `the name of this service, as ${at} keeps its answers in Redis: set the module's option ` +
      "'service', or 'level1: false' for a route without a shared cache",
  );
}

function isWrite(handler: object, { idempotent }: DegradeOptions): boolean {
  if (idempotent !== undefined) return !idempotent;
  const verb = Reflect.getMetadata(VERB, handler) as RequestMethod | undefined;
  const { GET, HEAD, ALL, OPTIONS } = RequestMethod;
  return Reflect.hasMetadata(MESSAGE_PATTERN, handler)
    ? !Reflect.hasMetadata(PATH, handler)
    : ![GET, HEAD, ALL, OPTIONS].includes(verb ?? GET);
}

function isStream(handler: object): boolean {
  const patterns = (Reflect.getMetadata(MESSAGE_PATTERN, handler) ?? []) as {
    streaming?: string;
  }[];
  return [patterns].flat().some(({ streaming = 'no_stream' }) => streaming !== 'no_stream');
}

function answersByItself(type: Class, name: string): boolean {
  if (Reflect.getMetadata(PASSTHROUGH, type, name) === true) return false;
  const parameters = (Reflect.getMetadata(ROUTE_ARGUMENTS, type, name) ?? {}) as object;
  return Object.keys(parameters).some((key) => OWN_ANSWER.test(key));
}

function expect(
  at: string,
  options: DegradeOptions,
  name: keyof DegradeOptions,
  kind: 'boolean' | 'function' | 'string',
): void {
  const value = options[name];
  if (value === undefined || typeof value === kind) return;
  const what = { boolean: 'true or false', function: 'a function', string: 'a name' }[kind];
  throw new InvalidArgumentError(`${at}.${name}`, value, what);
}

/** It is sent as a header, too. */
const LONGEST_NOTICE = 200;

function checkNotice(at: string, notice: DegradeOptions['notice']): void {
  if (notice === undefined) return;
  plainObject(at, notice, 'an object with level2 and level3');
  rejectUnknown(at, notice, ['level2', 'level3']);
  for (const [name, text] of Object.entries(notice) as [string, unknown][]) {
    if (typeof text === 'string' && text !== '' && text.length <= LONGEST_NOTICE) continue;
    const what = `a text of at most ${LONGEST_NOTICE} characters`;
    throw new InvalidArgumentError(`${at}.${name}`, text, what);
  }
}

function checkList(at: string, list: unknown): void {
  if (list === undefined) return;
  if (Array.isArray(list) && list.every((one) => typeof one === 'string' && one !== '')) return;
  throw new InvalidArgumentError(at, list, 'a list of names');
}
