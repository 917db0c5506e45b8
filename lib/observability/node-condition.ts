import { type RecoveryPhase } from '../degradation/core/contract.js';
import { type NodeMode } from '../local/lease-calls.js';
import { isNotClosed, type BreakerKind } from '../protection/breaker-state.js';
import { type AppDenials, type Facts } from './sources.js';
import {
  type ConfigState,
  type LineState,
  type ResourceState,
  type StoreState,
  type WatchedState,
} from './state.js';

/** The condition of a node, beside its counts. */
export interface NodeCondition {
  /** Revision of the configuration that holds there. */
  readonly revision: number;
  readonly storeIsUp: boolean;
  /** All apps together ask for more than nine tenths of the capacity; undefined where there is no cluster. */
  readonly overloaded: boolean | undefined;
  readonly line: LineState | undefined;
  /** The mode in which the node decides each app. */
  readonly modes: readonly (readonly [app: string, mode: NodeMode])[];
  readonly resources: readonly NodeResource[];
  /** Of apps that are denied lately; none of versions that did not tell. */
  readonly denials: readonly AppDenials[];
}

export interface NodeResource {
  readonly resource: string;
  readonly breaker: BreakerKind | undefined;
  readonly phase: RecoveryPhase | undefined;
  readonly percent: number | undefined;
  /** Times that it fell to degraded since the start of the node. */
  readonly falls: number;
}

/** The worst first. */
export const BREAKERS: readonly BreakerKind[] = ['open', 'half-open', 'closed'];
export const PHASES: readonly RecoveryPhase[] = [
  ...(['forced', 'degraded', 'probing', 'ramp', 'normal', 'disabled'] as const),
];
export const MODES: readonly NodeMode[] = ['offline', 'direct', 'paced', 'batch'];

export function conditionOf(facts: Facts): NodeCondition {
  const { config, storeIsUp, overloaded, overload, limiter, protection, degradation } = facts;
  const resources = new Map<string, NodeResource>();
  const unknown = { breaker: undefined, phase: undefined, percent: undefined, falls: 0 };
  for (const [resource, { breaker }] of Object.entries(protection)) {
    resources.set(resource, { ...unknown, resource, breaker: breaker?.state });
  }
  for (const { resource, phase, percent, trips } of degradation?.resources ?? []) {
    const falls = Object.values(trips).reduce((sum, count) => sum + count, 0);
    const known = resources.get(resource) ?? { ...unknown, resource };
    resources.set(resource, { ...known, phase, percent, falls });
  }
  return {
    revision: config?.revision ?? 0,
    storeIsUp,
    overloaded,
    line: overload && { standing: overload.standing, waiting: overload.waiting },
    modes: Object.entries(limiter.quota?.apps ?? {}).map(([app, { mode }]) => [app, mode]),
    resources: [...resources.values()],
    denials: facts.denials,
  };
}

/** The condition of several nodes together. */
export interface JoinedCondition extends Pick<WatchedState, 'resources' | 'line'> {
  readonly config: ConfigState | undefined;
  readonly store: Pick<StoreState, 'isUp' | 'awayNodes'>;
  readonly overloaded: boolean;
  readonly modes: ReadonlyMap<string, Readonly<Partial<Record<NodeMode, number>>>>;
  readonly denials: ReadonlyMap<string, AppDenials>;
}

export function joinConditions(nodes: readonly NodeCondition[]): JoinedCondition {
  const revision = Math.max(0, ...nodes.map((node) => node.revision));
  const lines = nodes.flatMap(({ line }) => line ?? []);
  const awayNodes = nodes.filter(({ storeIsUp }) => !storeIsUp).length;
  return {
    resources: joinResources(nodes),
    line:
      lines.length === 0
        ? undefined
        : {
            standing: lines.some(({ standing }) => standing),
            waiting: lines.reduce((sum, { waiting }) => sum + waiting, 0),
          },
    config: {
      revision,
      behind: nodes.filter((node) => node.revision < revision).length,
      heard: nodes.length,
    },
    store: { isUp: awayNodes * 2 <= nodes.length, awayNodes },
    overloaded: nodes.some(({ overloaded }) => overloaded === true),
    modes: joinModes(nodes),
    denials: joinDenials(nodes),
  };
}

function joinResources(nodes: readonly NodeCondition[]): ResourceState[] {
  const joined = new Map<string, ResourceState>();
  for (const { resources } of nodes) {
    for (const { resource, breaker, phase, percent } of resources) {
      const known = joined.get(resource);
      joined.set(resource, {
        resource,
        breaker: worse(BREAKERS, breaker, known?.breaker),
        openNodes: (known?.openNodes ?? 0) + (isNotClosed(breaker) ? 1 : 0),
        phase: worse(PHASES, phase, known?.phase),
        percent: least(percent, known?.percent),
      });
    }
  }
  return [...joined.values()];
}

function joinModes(
  nodes: readonly NodeCondition[],
): Map<string, Partial<Record<NodeMode, number>>> {
  const joined = new Map<string, Partial<Record<NodeMode, number>>>();
  for (const { modes } of nodes) {
    for (const [app, mode] of modes) {
      const counts = joined.get(app) ?? {};
      counts[mode] = (counts[mode] ?? 0) + 1;
      joined.set(app, counts);
    }
  }
  return joined;
}

function joinDenials(nodes: readonly NodeCondition[]): Map<string, AppDenials> {
  const joined = new Map<string, AppDenials>();
  for (const { app, denied, byCluster } of nodes.flatMap(({ denials }) => denials)) {
    const known = joined.get(app) ?? { denied: 0, byCluster: 0 };
    joined.set(app, {
      ...{ app, denied: known.denied + denied, byCluster: known.byCluster + byCluster },
    });
  }
  return joined;
}

function worse<T>(order: readonly T[], one: T | undefined, other: T | undefined): T | undefined {
  return order.find((kind) => kind === one || kind === other);
}

function least(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.min(one, other);
}
