import { seededRandom } from '../engine/seeded-random.js';
import { drawFaults, drawTroubles, type FaultEvent } from './faults.js';
import {
  drawCountedPlan,
  drawDearPlan,
  drawPlan,
  drawScarcePlan,
  quotaCost,
  withDearRequests,
  withMorePolicies,
  type HistoryPlan,
} from './plan.js';

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
  | {
      readonly kind: 'reset';
      readonly process: number;
      readonly limit: number;
      readonly key: string;
    }
  | { readonly kind: 'change'; readonly limit: number; readonly factor: number };

export type HistoryEvent = { readonly atMs: number } & (UseEvent | FaultEvent);

/** A history to run: everything in it follows from the seed. */
export interface History {
  readonly seed: number;
  readonly plan: HistoryPlan;
  /** Events in order of time. */
  readonly events: readonly HistoryEvent[];
}

export const EVENTS = 500;
const MEAN_GAP_MS = 12;
/** Time for which the load stays where it is. */
const PHASE_MS = 600;
const MOST_AT_ONCE = 5;
/** One history in so many has requests that come in bunches: within this part of this time. */
const BUNCHED_EVERY = 4;
const BUNCH_MS = 400;
const RUSH_PART = 0.1;
/** One history in so many has requests that ask for several policies at once: this part of them. */
const LISTED_EVERY = 3;
const LISTED_PART = 0.5;
/** One history of so many is that of a quota of which more is asked for than there is. */
const SCARCE_EVERY = 8;
/** Of so many histories one has costly requests, one has grants to a process that come in vain, and one a reset right before an outage. */
const SPECIAL_EVERY = 16;
const DEAR = 8;
const IN_VAIN = 12;
const COUNTED = 14;

/** The history of a seed. */
export function historyOf(seed: number, events = EVENTS): History {
  if (seed % SCARCE_EVERY === SCARCE_EVERY - 1) return scarceHistory(seed, events);
  const special = seed % SPECIAL_EVERY;
  if (special === COUNTED) return filledUp(seed, events, countedHistory);
  if (special === IN_VAIN) return filledUp(seed, events, grantedInVain);
  const random = seededRandom(seed);
  const drawn = drawPlan(random);
  const isListed = seed % LISTED_EVERY === 1;
  const ofLists = seededRandom(seed + 3);
  const listable = isListed ? withMorePolicies(drawn, ofLists) : drawn;
  const isDear = special === DEAR && drawn.quota === undefined;
  const plan = isDear ? withDearRequests(listable) : listable;
  const untilMs = events * MEAN_GAP_MS;
  const faults = drawFaults(plan, untilMs, random);
  let uses = drawUses(plan, untilMs, events - faults.length, random);
  if (isDear) uses = uses.map(unchanged);
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

interface Draw {
  readonly random: () => number;
  readonly pick: (choices: number) => number;
  readonly untilMs: number;
}

/** Events in which something happens on purpose, and requests around them. */
interface Story {
  readonly plan: HistoryPlan;
  readonly events: HistoryEvent[];
  readonly drawAsk: () => HistoryEvent;
}

function filledUp(seed: number, count: number, tell: (draw: Draw) => Story): History {
  const random = seededRandom(seed);
  const pick = (choices: number): number => Math.floor(random() * choices);
  const { plan, events, drawAsk } = tell({ random, pick, untilMs: count * MEAN_GAP_MS });
  while (events.length < count) events.push(drawAsk());
  return { seed, plan, events: events.sort((a, b) => a.atMs - b.atMs) };
}

/** A round begins with a rest, in which the bucket fills up; then all but one process ask for all there is. */
const ROUND_MS = 1000;
const REST_MS = 250;
const RUSH_MS = 600;

/**
 * One process asks for most of the bucket when it is full, and hears of the grant only when the others have emptied
 * the bucket that has filled up since: what it gives back then was made good for already.
 */
function grantedInVain({ random, pick, untilMs }: Draw): Story {
  const plan = drawDearPlan(random);
  const [key, limit, cost] = ['k0', 0, quotaCost(plan)];
  const events: HistoryEvent[] = [];
  for (let atMs = 0; atMs < untilMs; atMs += ROUND_MS) {
    const ms = REST_MS + 50 + pick(200);
    events.push({ atMs, kind: 'late', process: 0, ms, forMs: 30 });
    events.push({ atMs: atMs + 5, kind: 'ask', process: 0, limit, key, cost, count: 1 });
  }
  const { unit } = plan.quota!;
  const drawAsk = (): HistoryEvent => {
    const round = pick(untilMs / ROUND_MS) * ROUND_MS;
    const atMs = round + Math.round((REST_MS + random() * RUSH_MS) * 100) / 100;
    const process = 1 + pick(plan.processes - 1);
    return { atMs, kind: 'ask', process, limit, key, cost: unit, count: MOST_AT_ONCE };
  };
  return { plan, events, drawAsk };
}

/** The processes have been counted three times by then, and no count is younger than a second when the reset comes. */
const COUNTED_MS = 2700;
const RESET_MS = 3750;

/**
 * The answer to a reset comes again, when the next call on that connection asks how many processes there are; then
 * the store goes, and each process has its part of the limit, by the number that it knows.
 */
function countedHistory({ random, pick, untilMs }: Draw): Story {
  const plan = drawCountedPlan(random);
  const process = pick(plan.processes);
  const key = 'k0';
  const ask = (atMs: number, asks: number): HistoryEvent => {
    return {
      atMs,
      kind: 'ask',
      process: asks,
      limit: 0,
      key,
      cost: 1,
      count: 1 + pick(MOST_AT_ONCE),
    };
  };
  const events: HistoryEvent[] = [
    { atMs: RESET_MS, kind: 'reply', process, fault: 'doubled', of: 'weirForgetBucket' },
    { atMs: RESET_MS, kind: 'reset', process, limit: 1, key },
    ask(RESET_MS + 5, process),
    { atMs: RESET_MS + 30, kind: 'down', forMs: 300 + pick(900) },
  ];
  // Tokens of that key that pass meanwhile are forgiven by the reset at the end: no process has reported them by then.
  for (let asks = 0; asks < plan.processes; asks++) {
    const atMs = RESET_MS + 100;
    events.push({ atMs, kind: 'ask', process: asks, limit: 1, key, cost: 1, count: MOST_AT_ONCE });
  }
  // Before that, an answer about the bucket itself comes again to each process, and may allow what is not there by
  // then. One only: with each of them the count of processes may get lost, and the last but one has to be known.
  for (let asks = 0; asks < plan.processes; asks++) {
    const atMs = 200 + pick(1600);
    events.push({ atMs, kind: 'reply', process: asks, fault: 'doubled', of: 'weirBuckets' });
  }
  const drawAsk = (): HistoryEvent => {
    const isBefore = random() < 0.4;
    const atMs = isBefore
      ? random() * COUNTED_MS
      : RESET_MS + 30 + random() * (untilMs - RESET_MS - 30);
    return ask(Math.round(atMs * 100) / 100, pick(plan.processes));
  };
  return { plan, events, drawAsk };
}

/** Rest and rush: buckets fill up, and then all is asked for at once. */
function bunched(event: HistoryEvent): HistoryEvent {
  const within = event.atMs % BUNCH_MS;
  const atMs = event.atMs - within + within * RUSH_PART;
  return { ...event, atMs: Math.round(atMs * 100) / 100 };
}

/** A limit that changed might not hold what is asked for. */
function unchanged(event: HistoryEvent): HistoryEvent {
  if (event.kind !== 'change') return event;
  const { atMs, limit } = event;
  return { atMs, kind: 'refund', process: 0, limit, key: 'k0' };
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
