import { ClusterOptions } from '../limiter/quota-options.js';
import { figure, percent } from '../observability/figures.js';
import { type QuotaState } from '../observability/state.js';
import { type ShownRoom } from './frame.js';

/** Quota, as far as room goes; and the part of the capacity that guarantees leave free, as the check of quotas has it. */
export interface RoomSeen {
  readonly quota: QuotaState | undefined;
  readonly reservedRatio: number | undefined;
  readonly isAway: boolean;
  readonly isShort: boolean;
}

/** May a limit be raised, and how far? Null where there is no cluster level. */
export function roomOf({ quota, reservedRatio, isAway, isShort }: RoomSeen): ShownRoom | null {
  if (quota?.capacity === undefined || quota.apps.length === 0) return null;
  const { capacity, apps } = quota;
  if (isAway) return { note: 'Not now: Redis is away, and a change needs it.', apps: [] };
  if (isShort) return { note: 'Not now: the cluster is overloaded.', apps: [] };
  const given = apps.reduce((sum, { guaranteed }) => sum + guaranteed, 0);
  const part = 1 - (reservedRatio ?? new ClusterOptions().reservedRatio);
  const most = capacity * part;
  const free = most - given < LEAST ? 0 : most - given;
  const ceilings = apps.some(({ burst }) => burst < capacity)
    ? 'a ceiling may go up to the capacity'
    : 'all ceilings are at the capacity';
  // All apps have the same tokens to share.
  const among = apps.length > 1 ? ', to one app or among them' : '';
  const ofCapacity = part < 1 ? ` (${percent(part)} of the capacity)` : '';
  const note =
    free === 0
      ? `No promise, as all of ${figure(most)}/s${ofCapacity} are given; ${ceilings}.`
      : `Yes: ${figure(given)} of ${figure(most)}/s${ofCapacity} are promised, so ${figure(free)}/s more can be${among}; ${ceilings}.`;
  return {
    note,
    apps: apps.map(({ app, guaranteed, burst }) => ({
      app,
      promise: [guaranteed, guaranteed + free],
      ceiling: [burst, Math.max(burst, capacity)],
    })),
  };
}

/** Tokens per second: less is not worth a word. */
const LEAST = 0.5;
