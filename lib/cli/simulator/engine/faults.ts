import { type QuotaFigures } from '../../../algorithms/quota/quota-limits.js';
import { type SimulatedFleet } from './fleet.js';
import { type NetworkState } from './network.js';
import { type World } from './world.js';

/** Something that happens at a second of the run. */
export interface Fault {
  readonly second: number;
  /** A word or two for the chart; without it the event is not marked there. */
  readonly label?: string;
  strike(world: World, fleet: SimulatedFleet): void;
}

export function outage(
  from: number,
  to: number,
  kind: Exclude<NetworkState, 'up'>,
): readonly Fault[] {
  return [
    { second: from, label: 'store away', strike: ({ network }) => (network.state = kind) },
    { second: to, label: 'store back', strike: ({ network }) => (network.state = 'up') },
  ];
}

export function stateLoss(second: number): Fault {
  return { second, label: 'state lost', strike: ({ store }) => store.lose() };
}

export function promotion(second: number, lagSeconds: number): readonly Fault[] {
  return [
    { second: 0, strike: ({ store }) => store.replicate(lagSeconds) },
    { second, label: 'promotion', strike: ({ store }) => store.promoteReplica() },
  ];
}

/** Nobody can tell the store of a loss: the worst that a failover can be. */
export function noWitness(): Fault {
  return { second: 0, strike: ({ store }) => (store.hidesWhatWasSeen = true) };
}

export function clockStep(second: number, bySeconds: number): Fault {
  const label = `clock ${bySeconds > 0 ? '+' : '−'}${Math.abs(bySeconds)} s`;
  return { second, label, strike: ({ store }) => store.stepClock(bySeconds) };
}

export function limitChange(second: number, figures: QuotaFigures): Fault {
  return { second, label: 'new limits', strike: ({ store }) => store.changeLimits(figures) };
}

export function join(second: number, slot: number, label?: string): Fault {
  return { second, label, strike: (_, fleet) => fleet.join(slot) };
}

export function leave(second: number, slot: number): Fault {
  return { second, strike: (_, fleet) => fleet.leave(slot) };
}

export function crash(second: number, slot: number): Fault {
  return { second, strike: (_, fleet) => fleet.crash(slot) };
}
