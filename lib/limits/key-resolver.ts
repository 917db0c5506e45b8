import { type ExecutionContext } from '@nestjs/common';
import { clientAddress } from '../common/address.js';
import { InvalidArgumentError } from '../common/errors.js';
import { isAsyncFunction, isStrayPromise } from '../common/promises.js';
import { type RequestReader } from '../requests/transport.js';

/**
 * The key of a request, which names the bucket that its tokens come from:
 * `'ip'` the caller's address, IPv6 by network; `'user'` who the application says it is; `'route'`
 * each handler by itself; `'global'` one for all; `{ header }`, `{ param: 'query.q' }` a value of the
 * request; `{ param: 0 }` the first thing that a message carries; a function; or several of them together.
 */
export type KeyOption =
  | 'ip'
  | 'user'
  | 'route'
  | 'global'
  | { readonly header: string }
  | { readonly param: string | number }
  | KeyFunction
  | readonly KeyOption[];

/** Gives the key of a request; it has to answer at once. */
export type KeyFunction = (context: ExecutionContext) => string | number | undefined | null;

/** A value, or what it is for a request. */
export type PerRequest<T> = T | ((context: ExecutionContext) => T);

/** Whether a key is known before the caller is. */
export function isEarlyKey(key: unknown): boolean {
  if (Array.isArray(key)) return key.every(isEarlyKey);
  if (typeof key === 'object' && key !== null) return 'header' in key;
  return key === 'ip' || key === 'global';
}

/** The bucket of all requests that have no key of their own. */
export const NO_KEY = '(none)';

/** The beginning of keys of callers by their name, and of those without one. */
export const USER = 'user:';
export const ANONYMOUS = 'anonymous:';

/** For functions whose result is needed at once. */
export const NOT_ASYNC = "a function that is not async: only 'user' and 'tier' may be";

export interface KeySettings {
  /** The caller's name, if the application knows it. */
  readonly user: ((context: ExecutionContext) => unknown) | undefined;
  readonly ipv6Prefix: number;
}

/** Gives the key of a request; undefined if it has none. */
export type KeyReader = (
  context: ExecutionContext,
  reader: RequestReader,
  route: string,
) => string | undefined;

/** Whether a key depends on who is calling. */
export function needsUser(key: KeyOption): boolean {
  return Array.isArray(key) ? (key as KeyOption[]).some(needsUser) : key === 'user';
}

/** Whether all callers have the same one. */
export function isSharedKey(key: KeyOption): boolean {
  if (Array.isArray(key)) return (key as KeyOption[]).every(isSharedKey);
  return key === 'global' || key === 'route';
}

/** The paths and places of what it reads from a request: not all of them have a meaning on every route. */
export function paramsOf(key: unknown): (string | number)[] {
  if (Array.isArray(key)) return key.flatMap(paramsOf);
  const param = (key as { param?: unknown } | undefined | null)?.param;
  return typeof param === 'string' || typeof param === 'number' ? [param] : [];
}

/** As it was written, for messages. */
export function keyText(key: KeyOption): string {
  if (Array.isArray(key)) return `[${(key as KeyOption[]).map(keyText).join(', ')}]`;
  if (typeof key === 'function') return 'its function';
  if (typeof key !== 'object') return `'${key}'`;
  return `{ ${Object.entries(key)
    .map(([kind, name]) => `${kind}: '${name}'`)
    .join()} }`;
}

/** Compiles the key of a policy; `anonymous` is the key of callers without a name. */
export function compileKey(
  at: string,
  key: KeyOption,
  anonymous: KeyOption,
  settings: KeySettings,
): KeyReader {
  if (Array.isArray(key)) return together(at, key as KeyOption[], anonymous, settings);
  if (typeof key === 'function') return functionReader(at, key);
  if (typeof key === 'object' && key !== null) return valueReader(at, key);
  switch (key) {
    case 'ip':
      return (context, reader) => {
        const address = reader.addressOf(context);
        return address ? textOf(clientAddress(address, settings.ipv6Prefix)) : undefined;
      };
    case 'user':
      return userReader(at, anonymous, settings);
    case 'route':
      return (_context, _reader, route) => route;
    case 'global':
      return () => 'global';
    default:
      throw new InvalidArgumentError(
        at,
        key,
        "'ip', 'user', 'route', 'global', { header }, { param }, a function, or a list of these",
      );
  }
}

/** The length of each part comes before it, so that no two lists of parts make the same key. */
const lengthened = (part: string): string => `${part.length}:${part};`;

export const joinedKey = (parts: readonly string[]): string => parts.map(lengthened).join('');

function together(
  at: string,
  keys: readonly KeyOption[],
  anonymous: KeyOption,
  settings: KeySettings,
): KeyReader {
  if (keys.length === 0) throw new InvalidArgumentError(at, keys, 'at least one key');
  const readers = keys.map((one, i) => compileKey(`${at}[${i}]`, one, anonymous, settings));
  return (context, reader, route) => {
    let joined = '';
    for (const read of readers) {
      const part = read(context, reader, route);
      if (part === undefined) return undefined;
      joined += lengthened(part);
    }
    return joined;
  };
}

function functionReader(at: string, key: KeyFunction): KeyReader {
  if (isAsyncFunction(key)) throw new InvalidArgumentError(at, key, NOT_ASYNC);
  return (context) => {
    const value: unknown = key(context);
    if (isStrayPromise(value)) throw new TypeError('a promise is no key');
    return textOf(value);
  };
}

const A_VALUE =
  '{ header: name } (metadata of gRPC, too), { param: path }, or of messages { param: place } counted from 0';

function valueReader(at: string, key: object): KeyReader {
  const { header, param, ...others } = key as { header?: unknown; param?: unknown };
  const isOneOf = (header === undefined) !== (param === undefined);
  if (!isOneOf || Object.keys(others).length > 0) throw new InvalidArgumentError(at, key, A_VALUE);
  if (typeof header === 'string' && header !== '') {
    const name = header.toLowerCase();
    return (context, reader) => textOf(reader.headerOf(context, name));
  }
  if (typeof param === 'string' && param !== '') {
    const path = param.split('.');
    return (context, reader) => textOf(reader.valueAt(context, path));
  }
  if (typeof param === 'number' && Number.isInteger(param) && param >= 0) {
    return (context, reader) => textOf(reader.elementAt?.(context, param));
  }
  throw new InvalidArgumentError(at, key, A_VALUE);
}

/** A chosen name must not be taken for an address, nor the other way round. */
function userReader(at: string, anonymous: KeyOption, settings: KeySettings): KeyReader {
  if (anonymous === 'user') {
    throw new InvalidArgumentError(`${at}.anonymous`, anonymous, 'a key that needs no user');
  }
  const readAnonymous = compileKey(`${at}.anonymous`, anonymous, 'ip', settings);
  return (context, reader, route) => {
    const name = callerOf(context, reader, settings);
    if (name !== undefined) return USER + name;
    const other = readAnonymous(context, reader, route);
    return other === undefined ? undefined : ANONYMOUS + other;
  };
}

export function callerOf(
  context: ExecutionContext,
  reader: RequestReader,
  { user }: KeySettings,
): string | undefined {
  return principalName(user === undefined ? reader.userOf(context) : user(context));
}

/** Applications keep a name, or an object with one in a few usual places. */
export function principalName(user: unknown): string | undefined {
  if (typeof user !== 'object' || user === null) return textOf(user);
  const { id, sub, userId, username } = user as Record<string, unknown>;
  return textOf(id) ?? textOf(sub) ?? textOf(userId) ?? textOf(username);
}

/** A value as the text of a key; undefined if it cannot be one. */
export function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value;
  if (typeof value === 'number' || typeof value === 'bigint') return String(value);
  return undefined;
}
