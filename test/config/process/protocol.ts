import { type ConfigLayer } from 'nestjs-weir';

/** The role of a process of the fleet. All of it travels as a message. */
export interface NodeSetup {
  readonly url: string;
  readonly nodeId: string;
  readonly pollMs: number;
  /** The step whose document its code has; see `documentOf`. */
  readonly step: number;
  readonly configVersion?: number;
  readonly isBusy: boolean;
}

export type NodeOrder =
  | { readonly order: 'open'; readonly setup: NodeSetup }
  | { readonly order: 'update'; readonly patch: ConfigLayer; readonly number: number }
  | { readonly order: 'close' };

/** Totals of the whole life of a process. */
export interface NodeTotals {
  asked: number;
  answered: number;
  failed: number;
  /** Requests, or moments, at which two revisions were in use side by side. There must be none. */
  mixes: string[];
  /** Unhandled rejections, uncaught errors and warnings of Node. There must be none. */
  strays: string[];
}

export type NodeReport =
  | { readonly report: 'opened'; readonly revision: number }
  | { readonly report: 'applied'; readonly revision: number; readonly step: number }
  | { readonly report: 'updated'; readonly number: number; readonly revision: number }
  | { readonly report: 'refused'; readonly number: number; readonly reason: string }
  /** When requests to the shared policy that passed were asked, and when they were answered. */
  | { readonly report: 'admitted'; readonly spans: Float64Array }
  | { readonly report: 'said'; readonly level: 'warn' | 'error'; readonly text: string }
  | { readonly report: 'closed'; readonly totals: NodeTotals }
  | { readonly report: 'broken'; readonly reason: string };

export const LEFT = 1000;
export const RIGHT = 2000;
/** The rate of the shared policy is so many times its burst, whatever the step. */
export const SHARED_PER_BURST = 4;
/** Added to every figure while the profile is on. */
export const PROMO = 100_000;

export const sharedBurst = (step: number): number => 20 + (step % 40);

/** Figures that all follow from one number, so that a mix of two states can be seen from outside. */
export function documentOf(step: number) {
  const burst = sharedBurst(step);
  return {
    policies: {
      left: { rate: LEFT + step, burst: LEFT + step, scope: 'node' as const },
      right: { rate: RIGHT + step, burst: RIGHT + step, scope: 'node' as const },
      shared: { rate: SHARED_PER_BURST * burst, burst, sync: 'exact' as const },
    },
    apps: { shop: { guaranteed: 1000 + step, burst: 2000 + step } },
  };
}

/** The same under the profile that `documentOf` is laid under. */
export const promoOf = (step: number) => ({
  policies: {
    left: { rate: PROMO + LEFT + step, burst: PROMO + LEFT + step },
    right: { rate: PROMO + RIGHT + step, burst: PROMO + RIGHT + step },
  },
});
