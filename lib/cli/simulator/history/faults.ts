import { type ReplyFault } from '../redis/virtual-links.js';
import { type HistoryPlan } from './plan.js';

/** A fault, which ends by itself. A process is a slot, or -1 for all of them. */
export type FaultEvent =
  | { readonly kind: 'late'; readonly process: number; readonly ms: number; readonly forMs: number }
  | { readonly kind: 'pause'; readonly forMs: number }
  | { readonly kind: 'down'; readonly forMs: number }
  | { readonly kind: 'drop'; readonly process: number }
  | { readonly kind: 'half-open'; readonly process: number }
  | {
      readonly kind: 'reply';
      readonly process: number;
      readonly fault: ReplyFault;
      /** Only the reply to this command; else the next one. */
      readonly of?: string;
    }
  | { readonly kind: 'flush' }
  | { readonly kind: 'lag' }
  | {
      readonly kind: 'restart';
      readonly keeps: 'all' | 'nothing' | 'replica';
      readonly downMs: number;
    }
  | { readonly kind: 'clock'; readonly ms: number }
  | { readonly kind: 'crash' | 'leave'; readonly process: number; readonly backAfterMs: number }
  | { readonly kind: 'stall'; readonly process: number; readonly forMs: number };

export type FaultKind = FaultEvent['kind'];

export const FAULT_KINDS: readonly FaultKind[] = [
  ...([
    'late',
    'pause',
    'down',
    'drop',
    'half-open',
    'reply',
    'flush',
    'lag',
    'restart',
    'clock',
  ] as const),
  ...(['crash', 'leave', 'stall'] as const),
];

/** Those that come so rarely that a fault of the next reply hardly ever meets them. */
const COMMANDS = ['weirSeedLimits', 'weirHeartbeat', 'weirForgetBucket', 'info'];
const MOST_KINDS = 3;
const MOST_FAULTS = 10;
const FLAKY_PART = 0.5;
const STORM_PART = 0.2;

/** A few kinds of faults per history, so that it is known what each of them may cost. */
export function drawFaults(
  plan: HistoryPlan,
  untilMs: number,
  random: () => number,
): ({ readonly atMs: number } & FaultEvent)[] {
  const pick = (choices: number): number => Math.floor(random() * choices);
  const kinds = Array.from(
    { length: pick(MOST_KINDS + 1) },
    () => FAULT_KINDS[pick(FAULT_KINDS.length)]!,
  );
  if (kinds.length === 0) {
    const draw = random();
    if (draw < STORM_PART) return storm(untilMs, random);
    return draw < STORM_PART + FLAKY_PART ? flaky(plan, untilMs, random) : [];
  }
  return Array.from({ length: 1 + pick(MOST_FAULTS) }, () => {
    const atMs = Math.round(random() * untilMs * 100) / 100;
    return { atMs, ...drawFault(kinds[pick(kinds.length)]!, plan, random) };
  });
}

/** The store is late again and again, each time for less than would count as an outage. */
function flaky(
  plan: HistoryPlan,
  untilMs: number,
  random: () => number,
): ({ readonly atMs: number } & FaultEvent)[] {
  const every = 2 * plan.decisionTimeoutMs + 100 + Math.floor(random() * 400);
  const ms = Math.round(plan.decisionTimeoutMs * (1.1 + random()));
  const forMs = Math.round(plan.decisionTimeoutMs * (0.3 + 0.5 * random()));
  return Array.from({ length: Math.floor(untilMs / every) }, (_, index) => {
    return { atMs: index * every, kind: 'late', process: -1, ms, forMs };
  });
}

/** Connections are lost again and again; each time they are back before a bucket is full. */
function storm(untilMs: number, random: () => number): ({ readonly atMs: number } & FaultEvent)[] {
  const every = 80 + Math.floor(random() * 300);
  return Array.from({ length: Math.floor(untilMs / every) }, (_, index) => {
    return { atMs: index * every, kind: 'drop', process: -1 };
  });
}

/** Troubles that come again and again: late answers to all, lost connections, or answers to one that come with the next rush. */
export function drawTroubles(
  plan: HistoryPlan,
  untilMs: number,
  rushEveryMs: number,
  random: () => number,
): ({ readonly atMs: number } & FaultEvent)[] {
  const draw = random();
  if (draw < 0.3) return flaky(plan, untilMs, random);
  if (draw < 0.6) return storm(untilMs, random);
  return Array.from({ length: Math.floor(untilMs / rushEveryMs / 2) }, (_, index) => {
    const ms = rushEveryMs + Math.round(random() * 40);
    return { atMs: (2 * index + 1) * rushEveryMs, kind: 'late', process: 0, ms, forMs: 30 };
  });
}

function drawFault(kind: FaultKind, plan: HistoryPlan, random: () => number): FaultEvent {
  const pick = (choices: number): number => Math.floor(random() * choices);
  const one = pick(plan.processes);
  const process = random() < 0.5 ? -1 : one;
  const forMs = 20 + pick(random() < 0.5 ? 150 : 2500);
  switch (kind) {
    case 'late':
      return {
        kind,
        process,
        ms: Math.round(plan.decisionTimeoutMs * (0.5 + 2 * random())),
        forMs,
      };
    case 'pause':
    case 'down':
      return { kind, forMs };
    case 'drop':
    case 'half-open':
      return { kind, process };
    case 'reply':
      return {
        kind,
        process: one,
        fault: (['doubled', 'skipped', 'cut', 'lost'] as const)[pick(4)]!,
        ...(random() < 0.5 && { of: COMMANDS[pick(COMMANDS.length)]! }),
      };
    case 'flush':
    case 'lag':
      return { kind };
    case 'restart':
      return { kind, keeps: (['all', 'nothing', 'replica'] as const)[pick(3)]!, downMs: pick(800) };
    case 'clock':
      return { kind, ms: [-3_600_000, -5000, -1500, -500, -50, 50, 2000, 3_600_000][pick(8)]! };
    case 'crash':
    case 'leave':
      return { kind, process: one, backAfterMs: pick(1000) };
    case 'stall':
      return { kind, process: one, forMs };
  }
}
