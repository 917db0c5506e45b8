import { seededRandom } from '../engine/seeded-random.js';
import { drawFaults, drawTroubles, type FaultEvent } from './faults.js';
import { drawPlan, drawScarcePlan, withMorePolicies, type HistoryPlan } from './plan.js';

/** Something that callers or operators do. */
export type UseEvent =
  | {
      readonly kind: 'ask';
      readonly process: number;
      readonly limit: number;
      readonly key: string;
      readonly cost: number;
      readonly count: number;
    }
  | {
      /** Several policies at once: all of them, or none. */
      readonly kind: 'list';
      readonly process: number;
      readonly limits: readonly number[];
      readonly key: string;
      readonly cost: number;
      readonly count: number;
    }
  | {
      readonly kind: 'acquire';
      readonly process: number;
      readonly limit: number;
      readonly key: string;
      readonly timeoutMs: number;
    }
  | {
      readonly kind: 'refund';
      readonly process: number;
      readonly limit: number;
      readonly key: string;
    }
  | { readonly kind: 'change'; readonly limit: number; readonly factor: number };

export type HistoryEvent = { readonly atMs: number } & (UseEvent | FaultEvent);

/** What is run: everything in it follows from the seed. */
export interface History {
  readonly seed: number;
  readonly plan: HistoryPlan;
  /** In order of time. */
  readonly events: readonly HistoryEvent[];
}

export const EVENTS = 500;
const MEAN_GAP_MS = 12;
/** So long the load stays where it is. */
const PHASE_MS = 600;
const MOST_AT_ONCE = 5;
/** In one history of so many requests come in bunches, in this part of this time. */
const BUNCHED_EVERY = 4;
const BUNCH_MS = 400;
const RUSH_PART = 0.1;
/** In one history of so many this part of the requests asks for several policies at once. */
const LISTED_EVERY = 3;
const LISTED_PART = 0.5;
/** One history of so many is that of a quota of which more is asked for than there is. */
const SCARCE_EVERY = 8;

/** The history of a seed. */
export function historyOf(seed: number, events = EVENTS): History {
  if (seed % SCARCE_EVERY === SCARCE_EVERY - 1) return scarceHistory(seed, events);
  const random = seededRandom(seed);
  const drawn = drawPlan(random);
  const isListed = seed % LISTED_EVERY === 1;
  const ofLists = seededRandom(seed + 3);
  const plan = isListed ? withMorePolicies(drawn, ofLists) : drawn;
  const untilMs = events * MEAN_GAP_MS;
  const faults = drawFaults(plan, untilMs, random);
  let uses = drawUses(plan, untilMs, events - faults.length, random);
  if (isListed) uses = uses.map((use) => listed(use, plan, ofLists));
  if (seed % BUNCHED_EVERY === 0) uses = uses.map(bunched);
  const all = [...faults, ...uses].sort((a, b) => a.atMs - b.atMs);
  return { seed, plan, events: all };
}

/** Nobody gives anything back, so that the bound is as close as it gets. */
function scarceHistory(seed: number, count: number): History {
  const random = seededRandom(seed);
  const plan = drawScarcePlan(random);
  const untilMs = count * MEAN_GAP_MS;
  const faults = drawTroubles(plan, untilMs, BUNCH_MS, random);
  const isBunched = random() < 0.5;
  const uses = drawUses(plan, untilMs, count - faults.length, random).map((use): HistoryEvent => {
    const { atMs } = isBunched ? bunched(use) : use;
    if (use.kind === 'ask') return { ...use, atMs };
    const [process, cost] = [Math.floor(random() * plan.processes), plan.quota!.unit];
    return { atMs, kind: 'ask', process, limit: 0, key: 'k0', cost, count: MOST_AT_ONCE };
  });
  return { seed, plan, events: [...faults, ...uses].sort((a, b) => a.atMs - b.atMs) };
}

/** Rest and rush: buckets fill up, and then all is asked for at once. */
function bunched(event: HistoryEvent): HistoryEvent {
  const within = event.atMs % BUNCH_MS;
  const atMs = event.atMs - within + within * RUSH_PART;
  return { ...event, atMs: Math.round(atMs * 100) / 100 };
}

/** Policies beside the one that is asked for; they follow it in the list. */
function listed(
  event: HistoryEvent,
  { policies }: HistoryPlan,
  random: () => number,
): HistoryEvent {
  if (event.kind !== 'ask' || event.limit >= policies.length) return event;
  if (random() >= LISTED_PART) return event;
  const { limit, ...rest } = event;
  const others = [...policies.keys()].filter((one) => one !== limit);
  if (random() < 0.5) others.reverse();
  const limits = [limit, ...others.slice(0, 1 + Math.floor(random() * others.length))];
  return { ...rest, kind: 'list', limits };
}

function drawUses(
  plan: HistoryPlan,
  untilMs: number,
  count: number,
  random: () => number,
): HistoryEvent[] {
  const limits = plan.policies.length + (plan.quota?.apps.length ?? 0);
  const pick = (choices: number): number => Math.floor(random() * choices);
  // In some phases all is asked of one process, in others of any: leases and shares have to follow.
  const hot = Array.from({ length: Math.ceil(untilMs / PHASE_MS) }, () => {
    return random() < 0.4 ? pick(plan.processes) : -1;
  });
  return Array.from({ length: count }, (): HistoryEvent => {
    const atMs = Math.round(random() * untilMs * 100) / 100;
    const phase = hot[Math.min(hot.length - 1, Math.floor(atMs / PHASE_MS))]!;
    const process = phase >= 0 && random() < 0.9 ? phase : pick(plan.processes);
    const limit = pick(limits);
    const key = random() < 0.8 ? 'k0' : 'k1';
    const draw = random();
    if (draw < 0.02) return { atMs, kind: 'refund', process, limit, key };
    if (draw < 0.05)
      return { atMs, kind: 'acquire', process, limit, key, timeoutMs: 50 + pick(400) };
    const isChange = draw < 0.0505 || (draw < 0.056 && plan.changes);
    if (isChange) return { atMs, kind: 'change', limit, factor: 0.5 + random() * 1.5 };
    const units = random() < 0.8 ? 1 : 1 + pick(plan.maxCost);
    const cost = limit < plan.policies.length ? units : units * plan.quota!.unit;
    return { atMs, kind: 'ask', process, limit, key, cost, count: 1 + pick(MOST_AT_ONCE) };
  });
}
