import type { Cluster, Redis } from 'ioredis';
import { type SharedRedis } from '../limiter/rate-limiter.js';
import { plain } from './alerts/alert.js';

/** The facts of a process at its start. */
export interface StartFacts {
  readonly version: string;
  /** Undefined where the store is in memory. */
  readonly store: string | undefined;
  readonly nodeId: string;
  /** Nodes that have been counted so far: a process counts others with its first call. */
  readonly nodes: number;
  readonly revision: number;
  readonly policies: number;
  readonly apps: number;
  /** Where the dashboard is; undefined without one. */
  readonly dashboard?: string | undefined;
}

/** `weir 0.1.0: redis 7.0.15 at 127.0.0.1:6379 (prefix weir), node api-3 of 12, revision 42, 14 policies, 4 apps` */
export function startLine(facts: StartFacts): string {
  const { version, store, nodeId, nodes, revision, policies, apps, dashboard } = facts;
  const parts = [
    store ?? 'store in memory, this process only',
    `node ${plain(nodeId)}${nodes > 1 ? ` of ${nodes}` : ''}`,
    ...(revision > 0 ? [`revision ${revision}`] : []),
    counted(policies, 'policy', 'policies'),
    ...(apps > 0 ? [counted(apps, 'app', 'apps')] : []),
    ...(dashboard === undefined ? [] : [`dashboard ${plain(dashboard)}`]),
  ];
  return `weir ${version}: ${parts.join(', ')}`;
}

const counted = (count: number, one: string, many: string): string =>
  `${count} ${count === 1 ? one : many}`;

/** Where Redis is and which one, without user and password; a server that does not say has no version. */
export async function describeRedis({ client, prefix }: SharedRedis): Promise<string> {
  const [server] = serversOf(client);
  const info = await server?.info('server').catch(() => '');
  const version = /^redis_version:([\w.-]+)/m.exec(info ?? '')?.[1];
  const name = 'nodes' in client ? 'redis cluster' : 'redis';
  const { host, port, path } = server?.options ?? {};
  const at = path ?? `${host ?? '?'}:${port ?? '?'}`;
  return `${name}${version === undefined ? '' : ` ${version}`} at ${plain(at)} (prefix ${prefix})`;
}

const serversOf = (client: Redis | Cluster): Redis[] =>
  'nodes' in client ? client.nodes('master') : [client];
