import { type HttpAdapterHost } from '@nestjs/core';

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

/** The address nearest to the client that was told by a trusted peer; `peer` if it is not trusted. */
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
