import { type RecoveryChange, type RecoveryStats, type TripCause } from './contract.js';

interface StageCount {
  readonly percent: number;
  entered: number;
  admitted: number;
  held: number;
}

/** What happened to a resource so far. */
export class RecoveryCounts {
  normal = 0;
  held = 0;
  late = 0;
  recovered = 0;
  readonly probes = { begun: 0, succeeded: 0, failed: 0, neutral: 0, expired: 0 };
  readonly trips: Record<TripCause, number> = {
    ...{ errors: 0, slow: 0, breaker: 0, overload: 0, operator: 0, relapse: 0 },
  };
  private readonly stages = new Map<number, StageCount>();

  stage(percent: number): StageCount {
    let stage = this.stages.get(percent);
    if (stage === undefined) {
      this.stages.set(percent, (stage = { percent, entered: 0, admitted: 0, held: 0 }));
    }
    return stage;
  }

  note({ from, to, percent, cause }: RecoveryChange): void {
    if (to === 'ramp') this.stage(percent).entered++;
    if (to === 'degraded' && from !== 'forced' && cause !== undefined) this.trips[cause]++;
    if (from === 'ramp' && to === 'normal') this.recovered++;
  }

  stats(
    refused: number,
  ): Pick<RecoveryStats, 'normal' | 'held' | 'late' | 'recovered'> &
    Pick<RecoveryStats, 'probes' | 'trips' | 'stages'> {
    const { normal, held, late, recovered } = this;
    const stages = [...this.stages.values()].sort((a, b) => a.percent - b.percent);
    return {
      ...{ normal, held, late, recovered },
      probes: { ...this.probes, refused },
      trips: { ...this.trips },
      stages: stages.map((stage) => ({ ...stage })),
    };
  }
}
