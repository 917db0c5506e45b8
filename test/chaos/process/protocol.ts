import { type PolicyInput, type QuotaOptions, type StoreInput } from 'nestjs-weir';

/** The role of a process of the fleet. All of it travels as a message. */
export interface ProcessSetup {
  /** Left out where only policies are asked. */
  readonly quota?: QuotaOptions;
  readonly policies?: Readonly<Record<string, PolicyInput>>;
  readonly store: StoreInput;
  readonly nodeId?: string;
  /** It begins without waiting for the store. */
  readonly startsCold?: boolean;
  /** Every tenth of a second `Date` is somewhere else, up to this far from the truth. */
  readonly wallClockStepsMs?: number;
}

/** Names that a process may be asked for: its apps, then its policies. */
export function namesOf({ quota, policies }: ProcessSetup): string[] {
  return [...Object.keys(quota?.apps ?? {}), ...Object.keys(policies ?? {})];
}

/** Requests of one app, or for one key of a policy, at a steady pace whether or not they are admitted. */
export interface Stream {
  readonly app: string;
  readonly perSecond: number;
  readonly cost?: number;
  /** So many at once, and as much more seldom. */
  readonly atOnce?: number;
}

export type Order =
  | { readonly order: 'open'; readonly setup: ProcessSetup }
  /** Takes the place of the load so far; an empty list ends it. */
  | { readonly order: 'load'; readonly streams: readonly Stream[] }
  | { readonly order: 'close' };

/** One line per admission: from, to, cost, the app's place in the streams' names, the source's in SOURCES. */
export const FIGURES_PER_ADMISSION = 5;
export const SOURCES = ['local', 'store', 'fallback'] as const;

export type Happening =
  | { readonly name: 'mode'; readonly app: string; readonly mode: string }
  | { readonly name: 'epoch'; readonly epoch: number }
  | { readonly name: 'overload'; readonly overloaded: boolean }
  | { readonly name: 'store'; readonly state: 'down' | 'up' };

/** Totals of the whole life of a process. Every request is asked once, and must be answered once. */
export interface Totals {
  asked: number;
  answered: number;
  admitted: number;
  /** Decided before `tryAcquire` returned. */
  atOnce: number;
  /** Requests that ended in an error instead of a decision. */
  failed: number;
  longestWaitMicros: number;
  /** Unhandled rejections, uncaught errors and warnings. There must be none. */
  strays: string[];
}

/** For so long, up to an instant, nothing ran in a process. */
export interface Standstill {
  readonly toMicros: number;
  readonly micros: number;
}

export type Report =
  | { readonly report: 'opened' }
  /** All that was admitted up to `upToMicros` and has not been reported before. */
  | {
      readonly report: 'progress';
      readonly upToMicros: number;
      readonly admissions: Float64Array;
      /** Requests since the last report. */
      readonly asked: number;
      readonly atOnce: number;
      readonly standstills: readonly Standstill[];
    }
  | { readonly report: 'happening'; readonly atMicros: number; readonly happening: Happening }
  | { readonly report: 'closed'; readonly totals: Totals }
  | { readonly report: 'broken'; readonly reason: string };

/** A clock that all processes of a machine share: the time since it was started. */
export function sharedMicros(): number {
  return Number(process.hrtime.bigint()) / 1000;
}
