import {
  clusterDepth,
  stockDepth,
  type AppFigures,
  type ClusterFigures,
  type QuotaFigures,
} from '../algorithms/quota/quota-limits.js';
import { durationMs, type Duration } from '../common/duration.js';
import { InvalidArgumentError } from '../common/errors.js';
import { remembered } from '../common/immutable.js';
import {
  NAME,
  plainObject,
  rejectUnknown,
  wholeAbove0,
  withoutUndefined,
} from '../common/validate.js';

/** The resource that all apps share. The initial values are the defaults. */
export class ClusterOptions {
  /** Tokens per second that it can take. */
  capacity!: number;
  /** How much more than a second's capacity may be taken at once after a quiet time. */
  burstRatio = 1.2;
  /** The part of the capacity that guarantees leave free, and that priority 0 is never kept from. */
  reservedRatio = 0.1;
}

/** One app's share of it. The initial values are the defaults. */
export class AppOptions {
  /** Tokens per second that are there whenever the app asks. */
  guaranteed!: number;
  /** Tokens per second that it never exceeds. Default: the guarantee. */
  burst?: number;
  /** How long it takes until burst credit that was drawn on is whole again. */
  burstDuration: Duration = '60s';
  /** The app's turn when there is not enough: 0 before 1 before 2 before 3. */
  priority: 0 | 1 | 2 | 3 = 3;
  /** Tokens beyond the guarantee are borrowed idle capacity, and spend no burst credit. */
  elastic = true;
}

/** How a process deals with its lease. The initial values are the defaults. */
export class LocalOptions {
  /** While there is a shortage the store is asked no more often than this. */
  pace: Duration = '50ms';
  /** After so long without a call a lease is void. */
  leaseTtl: Duration = '1s';
  /** Consumption is reported at the latest after this… */
  syncInterval: Duration = '100ms';
  /** …or after so many tokens. */
  batchThreshold = 1000;
  /** A fixed stock of tokens. Default: as much as demand asks for. */
  reserveTarget?: number;
  /** With a fixed stock: it is refilled at this part of it. */
  refillThreshold = 0.2;
  /**
   * The apps that this process may serve. While the store is away they are shared with the other
   * processes that may serve them. Default: all, or the module's `app` if that is a text.
   */
  apps?: readonly string[];
  /** How many processes may serve an app, until the store was first heard of. */
  nodes = 1;
}

/** Shares of a cluster's capacity: the cluster, its apps, and how this process leases. */
export interface QuotaOptions {
  /** Which cluster this is, if several share a store. Default `'default'`. */
  cluster?: { capacity: number } & Partial<ClusterOptions>;
  clusterId?: string;
  apps: Record<string, { guaranteed: number } & Partial<AppOptions>>;
  /** The most that one request may cost; buckets are at least this deep. Default 1. */
  maxCost?: number;
  local?: Partial<LocalOptions>;
}

/** A quota, checked. */
export interface QuotaSettings {
  readonly clusterId: string;
  readonly figures: QuotaFigures;
  readonly local: LocalOptions;
}

export const DEFAULT_CLUSTER_ID = 'default';
export const DEFAULT_MAX_COST = 1;
const KNOWN_QUOTA = ['cluster', 'clusterId', 'apps', 'maxCost', 'local'];
const KNOWN_CLUSTER = ['capacity', ...Object.keys(new ClusterOptions())];
const KNOWN_APP = ['guaranteed', 'burst', ...Object.keys(new AppOptions())];
const KNOWN_LOCAL = ['reserveTarget', 'apps', ...Object.keys(new LocalOptions())];
/** A call is settled in time that grows with the number of apps. */
const MOST_APPS = 1000;
/** The part of the cluster's depth that the guaranteed buckets may fill together. */
const MOST_STOCK = 0.9;

export const checkQuota = remembered((input: QuotaOptions): QuotaSettings => {
  plainObject('quota', input, 'an object with apps');
  rejectUnknown('quota', input, KNOWN_QUOTA);
  const { clusterId = DEFAULT_CLUSTER_ID, maxCost = DEFAULT_MAX_COST } = input;
  if (typeof clusterId !== 'string' || !NAME.test(clusterId)) {
    throw new InvalidArgumentError('quota.clusterId', clusterId, 'letters, digits and _ . -');
  }
  wholeAbove0('quota.maxCost', maxCost);
  const local = checkLocal(input.local ?? {});
  const cluster = input.cluster === undefined ? undefined : checkCluster(input.cluster);
  plainObject('quota.apps', input.apps, 'an object of apps by name');
  const names = Object.keys(input.apps);
  if (names.length > MOST_APPS) {
    const most = MOST_APPS.toLocaleString('en');
    const hint = `at most ${most} apps: callers without a guarantee of their own share an app`;
    throw new InvalidArgumentError('quota.apps', names.length, hint);
  }
  checkServed(local.apps, names);
  // By name, so that all nodes number the apps alike.
  const apps = names.sort().map((app) => checkApp(app, input.apps[app]!));
  if (apps.length === 0)
    throw new InvalidArgumentError('quota.apps', input.apps, 'at least one app');
  const figures: QuotaFigures = {
    cluster,
    apps,
    maxCost,
    paceMs: durationMs(local.pace, 'quota.local.pace'),
    leaseTtlMs: durationMs(local.leaseTtl, 'quota.local.leaseTtl'),
    reserveTarget: local.reserveTarget ?? 0,
  };
  if (cluster !== undefined) checkTogether(cluster, figures);
  return { clusterId, figures, local };
});

function checkCluster(input: Partial<ClusterOptions>): ClusterFigures {
  plainObject('quota.cluster', input, 'an object with a capacity');
  rejectUnknown('quota.cluster', input, KNOWN_CLUSTER);
  const options = Object.assign(new ClusterOptions(), withoutUndefined(input));
  wholeAbove0('quota.cluster.capacity', options.capacity);
  within('quota.cluster.burstRatio', options.burstRatio, 1, 100);
  within('quota.cluster.reservedRatio', options.reservedRatio, 0, 0.2);
  return options;
}

function checkApp(app: string, input: Partial<AppOptions>): AppFigures {
  const at = `quota.apps.${app}`;
  if (!NAME.test(app))
    throw new InvalidArgumentError('quota.apps', app, 'letters, digits and _ . -');
  plainObject(at, input, 'an object with a guarantee');
  rejectUnknown(at, input, KNOWN_APP);
  const options = Object.assign(new AppOptions(), withoutUndefined(input));
  const { guaranteed, priority, elastic } = options;
  wholeAbove0(`${at}.guaranteed`, guaranteed);
  const burst = options.burst ?? guaranteed;
  wholeAbove0(`${at}.burst`, burst);
  if (burst < guaranteed) {
    throw new InvalidArgumentError(`${at}.burst`, burst, `at least the guarantee of ${guaranteed}`);
  }
  if (![0, 1, 2, 3].includes(priority)) {
    throw new InvalidArgumentError(`${at}.priority`, priority, '0, 1, 2 or 3');
  }
  if (typeof elastic !== 'boolean') {
    throw new InvalidArgumentError(`${at}.elastic`, elastic, 'true or false');
  }
  const burstDurationMs = durationMs(options.burstDuration, `${at}.burstDuration`);
  return { app, guaranteed, burst, burstDurationMs, priority, elastic };
}

/** The rules about all apps together. */
function checkTogether(cluster: ClusterFigures, { apps, maxCost, paceMs }: QuotaFigures): void {
  const { capacity, reservedRatio } = cluster;
  const guaranteed = apps.reduce((sum, app) => sum + app.guaranteed, 0);
  const most = capacity * (1 - reservedRatio);
  if (guaranteed > most) {
    throw new InvalidArgumentError(
      'quota.apps',
      guaranteed,
      `guarantees of no more than ${most} in all (capacity ${capacity} less ${reservedRatio} of it)`,
    );
  }
  const depth = clusterDepth(cluster, maxCost, paceMs);
  const stock = apps.reduce(
    (sum, app) => sum + stockDepth(app.guaranteed, cluster, depth, maxCost, paceMs),
    0,
  );
  if (stock > MOST_STOCK * depth) {
    throw new InvalidArgumentError(
      'quota.apps',
      stock,
      `guaranteed buckets of no more than ${MOST_STOCK * depth} tokens in all: ` +
        `fewer apps, a smaller maxCost (${maxCost}) or a larger burstRatio (${cluster.burstRatio})`,
    );
  }
}

function checkLocal(input: Partial<LocalOptions>): LocalOptions {
  plainObject('quota.local', input, 'an object');
  rejectUnknown('quota.local', input, KNOWN_LOCAL);
  const options = Object.assign(new LocalOptions(), withoutUndefined(input));
  durationMs(options.syncInterval, 'quota.local.syncInterval');
  wholeAbove0('quota.local.batchThreshold', options.batchThreshold);
  if (options.reserveTarget !== undefined) {
    wholeAbove0('quota.local.reserveTarget', options.reserveTarget);
  }
  within('quota.local.refillThreshold', options.refillThreshold, 0, 1);
  wholeAbove0('quota.local.nodes', options.nodes);
  return options;
}

/** An app that is not in the quota yet may come with a later revision, but not by mistake. */
function checkServed(served: unknown, names: readonly string[]): void {
  if (served === undefined) return;
  const isList = Array.isArray(served) && served.length > 0;
  if (isList && served.every((app) => names.includes(app as string))) return;
  throw new InvalidArgumentError('quota.local.apps', served, `a list of ${names.join(', ')}`);
}

function within(field: string, value: unknown, least: number, most: number): void {
  if (typeof value !== 'number' || !(value >= least) || value > most) {
    throw new InvalidArgumentError(field, value, `a number from ${least} to ${most}`);
  }
}
