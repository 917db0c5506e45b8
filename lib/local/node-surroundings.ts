import { type QuotaCall, type QuotaReply } from '../algorithms/quota/quota-protocol.js';
import { type Clock } from '../common/clock.js';
import { type AppTokens } from './app-tokens.js';
import { type NodeIdentity } from './call-writer.js';
import { type NodeMode } from './mode-watch.js';
import { type StockPlan, type StockSettings } from './stock-plan.js';

export interface QuotaNodeSettings extends NodeIdentity, StockSettings {
  /** While there is a shortage the store is asked no more often than this. */
  readonly paceMicros: number;
  /** Consumption travels by itself only when it is this old, or `batchThreshold` much. */
  readonly syncMicros: number;
  readonly decisionTimeoutMs: number;
}

/** What a change of the quota may change of them. */
export type NodeTuning = Omit<QuotaNodeSettings, keyof NodeIdentity | 'decisionTimeoutMs'>;

export interface QuotaNodeEvents {
  /** The store does not answer, and this node does without it; or it answers again. Once per switch. */
  lost(error: unknown): void;
  found(): void;
  mode(app: string, mode: NodeMode): void;
  epoch(epoch: number): void;
  overload(isOverloaded: boolean): void;
  /** During overload the app has another share from now on; 0 when it is over. */
  adjust(tank: AppTokens): void;
  /** The store goes by limits of a later revision than this node; told once for each. */
  revision(revision: number): void;
  /** A call was answered; apps are called by their place among the tanks. */
  settled(call: QuotaCall, reply: QuotaReply, tanks: readonly AppTokens[]): void;
}

/** What the parts of a node have in common. */
export interface NodeSurroundings {
  readonly settings: QuotaNodeSettings;
  readonly tanks: readonly AppTokens[];
  readonly plan: StockPlan;
  readonly clock: Clock;
  readonly events: Partial<QuotaNodeEvents>;
}
