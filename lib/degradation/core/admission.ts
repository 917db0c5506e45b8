import { type Admission } from './contract.js';
import { type RecoveryState } from './recovery-state.js';

/** For requests that pass without being counted. No phase has the epoch 0. */
export const UNCOUNTED: Admission = Object.freeze({ kind: 'normal', epoch: 0, permit: 0 });

export function admission(kind: Admission['kind'], { epoch, permit }: RecoveryState): Admission {
  return Object.freeze({ kind, epoch, permit: kind === 'probe' ? permit : 0 });
}

/** For requests that are not let through. */
export function heldBack(state: RecoveryState): Admission {
  const { epoch, level, phase } = state;
  const reason = phase === 'forced' ? 'forced' : 'degraded';
  return Object.freeze({ kind: 'degraded', epoch, permit: 0, level, reason });
}
