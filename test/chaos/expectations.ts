import { deepestBurst, type Admission } from './admissions.js';
import { CAPACITY, DEPTH, SHARE_DEPTH, SHARES_PER_SECOND } from './fleet.js';
import { type LoadProcess } from './load-process.js';
import { note } from './note.js';
import { type Totals } from './process/protocol.js';

/** Redis reads whole microseconds, so a span may seem one shorter to it at either end. */
const CLOCK_MICROS = 2;

/** The bound of the cluster: in no span Δ more than C·Δ + B, and what a fault may add to it. */
export function expectWithinBound(all: readonly Admission[], excess = 0): void {
  const rounding = (CAPACITY * CLOCK_MICROS) / 1_000_000;
  expect(all.length).toBeGreaterThan(0);
  const burst = deepestBurst(all, CAPACITY);
  note({ burst, bound: DEPTH + excess });
  expect(burst).toBeLessThanOrEqual(DEPTH + excess + rounding);
}

/**
 * Where nodes may have been without Redis for a while, they also had their share of the guarantees:
 * that comes at its own rate on top, from a bucket per node and app that holds one request.
 */
export function expectWithinBoundAndShares(
  all: readonly Admission[],
  nodes: number,
  excess = 0,
): void {
  const byShare = all.filter(({ source }) => source === 'fallback');
  const burst = deepestBurst(byShare, SHARES_PER_SECOND);
  note({ burst, bound: nodes * SHARE_DEPTH, byShare: byShare.length });
  expect(burst).toBeLessThanOrEqual(nodes * SHARE_DEPTH + 1e-6);
  expectWithinBound(
    all.filter(({ source }) => source !== 'fallback'),
    excess,
  );
}

/** Each request has had one answer, and nothing went wrong out of sight. */
export function expectAllAnswered(totals: readonly Totals[]): void {
  for (const { asked, answered, failed, strays } of totals) {
    expect(strays).toEqual([]);
    expect({ answered, failed }).toEqual({ answered: asked, failed: 0 });
  }
}

/** A switch is told once: no mode follows itself. */
export function expectSwitchesOnce(
  processes: readonly LoadProcess[],
  apps: readonly string[],
): void {
  for (const one of processes) {
    for (const app of apps) {
      const modes = one.modesOf(app);
      expect(modes.filter((mode, i) => mode === modes[i - 1])).toEqual([]);
    }
  }
}
