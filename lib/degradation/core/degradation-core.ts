import { type Clock } from '../../common/clock.js';
import { type ProbeLease } from '../../stores/probe-lease.js';
import { type SharedCache } from '../../stores/shared-cache.js';
import { AnswerCaches, type AnswerCacheStats } from './answer-caches.js';
import { type RecoveryStats } from './contract.js';
import { FallbackChain, type FallbackStats } from './fallback-chain.js';
import { checkDegradation, type DegradationInput } from './options.js';
import { Recoveries } from './recoveries.js';

export interface DegradationDeps {
  readonly options?: DegradationInput;
  readonly clock: Clock;
  /** The name of this process in the fleet. */
  readonly nodeId: string;
  /** Level 1; without it, what this process has stored in the last seconds. It is closed with the core. */
  readonly shared?: SharedCache;
  /** Decides which node probes. Default: this process does, at any time. */
  readonly lease?: ProbeLease;
}

/** The state and counts of `@Degrade`: resources, caches, answers by level and reason. */
export interface DegradationStats {
  readonly resources: readonly RecoveryStats[];
  readonly caches: AnswerCacheStats;
  readonly fallbacks: FallbackStats;
}

/** Degradation without a framework: the recoveries, the caches and the way through the levels. */
export class DegradationCore {
  readonly recoveries: Recoveries;
  readonly caches: AnswerCaches;
  readonly fallbacks: FallbackChain;

  constructor({ options, clock, nodeId, shared, lease }: DegradationDeps) {
    const figures = checkDegradation(options);
    this.recoveries = new Recoveries({ figures, nodeId, lease }, clock);
    this.caches = new AnswerCaches(figures, clock, shared);
    this.fallbacks = new FallbackChain(figures, this.caches, clock);
  }

  /** Checks other options, and throws if they cannot work; what comes back puts them into effect. */
  prepare(options: DegradationInput): () => void {
    const figures = checkDegradation(options);
    const commits = [this.recoveries, this.caches, this.fallbacks].map((one) =>
      one.prepare(figures),
    );
    return () => {
      for (const commit of commits) commit();
    };
  }

  stats(): DegradationStats {
    return {
      resources: this.recoveries.stats(),
      caches: this.caches.stats(),
      fallbacks: this.fallbacks.stats(),
    };
  }

  close(): void {
    this.recoveries.close();
    this.caches.close();
  }
}
