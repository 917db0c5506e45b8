import { type HttpAdapterHost } from '@nestjs/core';
import { CallerGone } from '../../requests/transport.js';

/** A request of Express or Fastify, as far as limits look at it. */
export interface HttpRequest {
  readonly method: string;
  readonly ip?: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly user?: unknown;
  /** Express: the application, which knows what proxies are trusted. */
  readonly app?: { get?(setting: string): unknown };
  /** Fastify: there only if some proxy is trusted. */
  readonly ips?: readonly string[];
  /** Fastify: the request of Node. */
  readonly raw?: object;
  readonly socket?: { readonly remoteAddress?: string; readonly destroyed?: boolean };
}

export interface HttpResponse {
  /** Express, and Node itself. */
  setHeader?(name: string, value: string): unknown;
  /** Fastify, where `setHeader` is only on `raw`. */
  header?(name: string, value: string): unknown;
  removeHeader?(name: string): unknown;
  readonly raw?: NodeResponse;
  readonly writableEnded?: boolean;
  readonly destroyed?: boolean;
  on?(event: 'close', listener: () => void): unknown;
  off?(event: 'close', listener: () => void): unknown;
}

export interface AnswerHeaders {
  getHeader(name: string): string | number | string[] | undefined;
}

export interface NodeResponse extends AnswerHeaders {
  readonly statusCode: number;
  readonly writableEnded?: boolean;
  readonly destroyed?: boolean;
  on?(event: 'close' | 'finish', listener: () => void): unknown;
  off?(event: 'close', listener: () => void): unknown;
}

/** The address that the framework gives, which knows what proxies to trust; else the peer's. */
export function addressOf(request: HttpRequest): string | undefined {
  const address = request.ip ?? request.socket?.remoteAddress;
  // Not a caller without an address, who would have a bucket of its own.
  if (address === undefined && request.socket?.destroyed === true) throw new CallerGone();
  return address;
}

/** A header that was sent several times counts as one, in the order they came. */
export function headerOf(
  { headers }: Pick<HttpRequest, 'headers'>,
  name: string,
): string | undefined {
  // HTTP/2 has the host under a name of its own.
  const value = headers[name] ?? (name === 'host' ? headers[':authority'] : undefined);
  return typeof value === 'string' ? value : value?.join(',');
}

/** A value by path, of own properties only: `params.__proto__` is no value of a caller. */
export function valueAt(from: unknown, path: readonly string[]): unknown {
  if (typeof from !== 'object' || from === null) return undefined;
  // The parts of a request are often getters of its prototype; what callers sent is not.
  return ownValueAt((from as Record<string, unknown>)[path[0]!], path, 1);
}

/** Removes a header, on Express and Fastify alike. */
export function removeHeader(response: HttpResponse, name: string): void {
  response.removeHeader?.(name);
}

export function writeHeader(response: HttpResponse, name: string, value: string): void {
  if (response.setHeader !== undefined) response.setHeader(name, value);
  else response.header?.(name, value);
}

/** The request that a socket began with; no framework has looked at it. */
export interface UpgradeRequest {
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>;
  readonly socket?: { readonly remoteAddress?: string };
  readonly user?: unknown;
}

/** Whether a peer that many hops away is a proxy whose word about the next one counts. */
export type TrustProxy = (address: string, hop: number) => boolean;

/** Express keeps what `trust proxy` means as a function; other frameworks show nothing of theirs. */
export function trustProxyOf(adapterHost: HttpAdapterHost | undefined): TrustProxy | undefined {
  const adapter = adapterHost?.httpAdapter;
  if (adapter?.getType() !== 'express') return undefined;
  const express = adapter.getInstance<{ get(setting: string): unknown }>();
  const trust = express.get('trust proxy fn');
  return typeof trust === 'function' ? (trust as TrustProxy) : undefined;
}

/** The address nearest to the client that a trusted peer has named; `peer` if it is not trusted. */
export function clientBehind(
  peer: string,
  forwardedFor: string | undefined,
  trust: TrustProxy,
): string {
  const told = (forwardedFor ?? '').split(',').map((address) => address.trim());
  let client = peer;
  for (let hop = 0; told.length > 0 && trust(client, hop); hop++) {
    const next = told.pop()!;
    if (next === '') break;
    client = next;
  }
  return client;
}

/** As `Retry-After` has it: never too early, and never at once. */
export function waitSeconds(retryAfterMs: number): number {
  return Math.max(1, Math.ceil(retryAfterMs / 1000));
}

/** A value of a message by path, of own properties only: no caller has sent `__proto__` or `toString`. */
export function ownValueAt(from: unknown, path: readonly string[], begin = 0): unknown {
  let value = from;
  for (let depth = begin; depth < path.length; depth++) {
    const name = path[depth]!;
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name))
      return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

/** The value of a message at a place: of a list its elements, and anything else is the first. */
export function elementOf(payload: unknown, index: number): unknown {
  if (Array.isArray(payload)) return payload[index] as unknown;
  return index === 0 ? payload : undefined;
}
