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
 * that comes at its own rate on top. A node that has just been started takes itself for the only one
 * until its next call, so each of them may have had the whole for a while.
 */
export function expectWithinBoundAndShares(
  all: readonly Admission[],
  nodes: number,
  excess = 0,
): void {
  expectSharesOnly(
    all.filter(({ source }) => source === 'fallback'),
    nodes,
    nodes * SHARES_PER_SECOND,
  );
  expectWithinBound(
    all.filter(({ source }) => source !== 'fallback'),
    excess,
  );
}

/** No more than the shares, from buckets as deep for their rate as the cluster's, or the largest request. */
export function expectSharesOnly(
  all: readonly Admission[],
  nodes: number,
  perSecond = SHARES_PER_SECOND,
): void {
  const burst = deepestBurst(all, perSecond);
  const most = (perSecond * DEPTH) / CAPACITY + nodes * SHARE_DEPTH;
  note({ burst, bound: most, byShare: all.length });
  // The buckets count in fractions of tokens, and may be off by their rounding.
  expect(burst).toBeLessThanOrEqual(most + 1e-6);
}

/** Each request has had one answer, and nothing went wrong out of sight. */
export function expectAllAnswered(totals: readonly Totals[]): void {
  for (const { asked, answered, failed, strays } of totals) {
    expect(strays).toEqual([]);
    expect({ answered, failed }).toEqual({ answered: asked, failed: 0 });
  }
}

/** A switch is told once: nothing is told twice in a row. */
export function expectSwitchesOnce(
  processes: readonly LoadProcess[],
  apps: readonly string[],
): void {
  for (const one of processes) {
    for (const app of apps) {
      const modes = one.modesOf(app);
      expect(modes.filter((mode, i) => mode === modes[i - 1])).toEqual([]);
    }
    const overloads = one.happenings.flatMap((event) =>
      event.name === 'overload' ? [event.overloaded] : [],
    );
    expect(overloads).toEqual(overloads.map((_, i) => i % 2 === 0));
  }
}
