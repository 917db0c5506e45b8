import { InvalidArgumentError } from '../common/errors.js';
import {
  type ConfigLayers,
  type JsonObject,
  MOST_STAGED,
  type StagedName,
  type StagedUpdate,
} from '../stores/config-store.js';
import { TooManyStagedError, UnknownStagedError } from './config-errors.js';
import { patched } from './layers.js';

/** A time that is a little past means at once: clocks differ, and commands take their time. */
const AT_ONCE_MS = 60_000;

/** False if the time means at once. Throws for a time so long past that it must be a mistake. */
export function isAhead(effectiveAtMs: number, nowMs: number): boolean {
  if (effectiveAtMs > nowMs) return true;
  if (effectiveAtMs === 0 || nowMs - effectiveAtMs <= AT_ONCE_MS) return false;
  const [given, now] = [effectiveAtMs, nowMs].map((ms) => new Date(ms).toISOString());
  const expected = `a time to come: the store's clock says ${now}; leave it out for at once`;
  throw new InvalidArgumentError('effectiveAt', given, expected);
}

/** With one more, in order of time; of two for the same time the one that was staged first. */
export function withStaged(
  staged: readonly StagedUpdate[],
  update: StagedUpdate,
): readonly StagedUpdate[] {
  if (staged.length >= MOST_STAGED) throw new TooManyStagedError(MOST_STAGED, staged);
  return [...staged, update].sort((a, b) => a.effectiveAtMs - b.effectiveAtMs || a.id - b.id);
}

export function stagedWith(staged: readonly StagedUpdate[], id: number): StagedUpdate {
  const found = staged.find((one) => one.id === id);
  if (found === undefined) throw new UnknownStagedError(id, staged);
  return found;
}

/** Updates that wait after a rollback: those that waited then, unless their time has passed. */
export const waitingAgain = (
  staged: readonly StagedUpdate[],
  nowMs: number,
): readonly StagedUpdate[] => staged.filter(({ effectiveAtMs }) => effectiveAtMs > nowMs);

export const nameOf = ({ id, by, effectiveAtMs }: StagedName): StagedName => ({
  ...{ id, by, effectiveAtMs },
});

export const updateText = ({ id, by, effectiveAtMs }: StagedName): string =>
  `update ${id} by ${by} for ${new Date(effectiveAtMs).toISOString()}`;

/** The outcome of a staged update, as things stand. */
export interface Prospect {
  readonly update: StagedUpdate;
  /** The layers from then on. */
  readonly layers: ConfigLayers;
  /** Why it would be refused; then `layers` are those without it. */
  readonly fault?: unknown;
}

/** One after another, each over those before it that fit. */
export function prospects(
  layers: ConfigLayers,
  staged: readonly StagedUpdate[],
  check: (layers: ConfigLayers, update: StagedUpdate) => void,
): Prospect[] {
  let holding = layers;
  return staged.map((update): Prospect => {
    try {
      const then = laidOver(holding, update);
      check(then, update);
      holding = then;
      return { update, layers: then };
    } catch (fault) {
      return { update, layers: holding, fault };
    }
  });
}

export const laidOver = (layers: ConfigLayers, { patch }: { patch: JsonObject }): ConfigLayers =>
  patched(layers, patch);
