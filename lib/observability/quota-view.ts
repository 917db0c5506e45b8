import { type QuotaStatus } from '../algorithms/quota/quota-status.js';
import { type QuotaStats } from '../limiter/rate-limiter.js';
import { type JoinedCondition } from './node-condition.js';
import { type AppState, type QuotaState, type SeriesState } from './state.js';

/** The quota of the document. */
export interface QuotaDocument {
  readonly cluster?: { readonly capacity?: number | undefined } | undefined;
  readonly apps?: Readonly<Record<string, { readonly priority?: number | undefined }>> | undefined;
}

export interface QuotaSeen {
  readonly stats: QuotaStats | undefined;
  /** The ledger's figures; undefined where they were not read. */
  readonly status: QuotaStatus | undefined;
  readonly document: QuotaDocument;
  readonly condition: Pick<JoinedCondition, 'modes' | 'overloaded' | 'denials'>;
  readonly series: readonly SeriesState[];
}

/** The quota as it is shown; undefined where there is none. */
export function quotaOf({
  stats,
  status,
  document,
  condition,
  series,
}: QuotaSeen): QuotaState | undefined {
  if (stats === undefined) return undefined;
  const apps = Object.entries(stats.apps).map(([app, { guaranteed, burst, nodes }]): AppState => {
    const own = status?.apps[app];
    const seen = series.find(({ name }) => name === `app:${app}`);
    const denied = seen?.denied ?? 0;
    const { byCluster, denied: of } = condition.denials.get(app) ?? { byCluster: 0, denied: 0 };
    return {
      ...{ app, guaranteed, burst, priority: document.apps?.[app]?.priority },
      ...{ used: seen?.used ?? 0, denied },
      ...(of > 0 && { deniedByCluster: (denied * byCluster) / of }),
      ...{ demand: own?.demand, outstanding: own?.outstanding },
      nodes,
      modes: condition.modes.get(app) ?? {},
    };
  });
  // The ledger has 0 where there is no cluster level.
  const capacity = (status?.capacity ?? document.cluster?.capacity) || undefined;
  const came = apps.reduce((sum, { used, denied }) => sum + used + denied, 0);
  return {
    capacity,
    // The ledger's demand is an estimate, which falls at once: less than what came is not asked for.
    demand: status && Math.max(status.demand, came),
    stock: capacity === undefined ? undefined : status?.level,
    depth: capacity === undefined ? undefined : status?.depth,
    outstanding: status?.outstanding,
    overloaded: status?.overloaded ?? condition.overloaded,
    apps,
  };
}
