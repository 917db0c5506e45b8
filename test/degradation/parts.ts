import { type FallbackRequest } from '../../lib/degradation/core/contract.js';
import { DegradationCore } from '../../lib/degradation/core/degradation-core.js';
import { type DegradationInput } from '../../lib/degradation/core/options.js';
import { type SharedCache } from '../../lib/stores/shared-cache.js';
import { ManualClock } from '../support/manual-clock.js';

export interface House {
  readonly clock: ManualClock;
  readonly core: DegradationCore;
}

/** A core on a clock of our own; level 1 is what the process has itself unless it is given. */
export function house(
  options: DegradationInput = {},
  { clock = new ManualClock(), shared }: { clock?: ManualClock; shared?: SharedCache } = {},
): House {
  const core = new DegradationCore({
    options,
    clock,
    nodeId: 'a',
    shared,
  });
  return { clock, core };
}

/** A limited request with 200 ms left. */
export function request(
  { clock }: Pick<House, 'clock'>,
  part: Partial<FallbackRequest> & Pick<FallbackRequest, 'levels'>,
): FallbackRequest {
  return { key: 'k', reason: 'limited', deadline: clock.now() + 200_000, ...part };
}
