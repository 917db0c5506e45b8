import { type Clock } from '../common/clock.js';
import { StoreUnavailableError } from '../common/errors.js';
import { type ConfigStore, type NodeAck } from '../stores/config-store.js';

/** What the running processes have said of a revision. */
export interface FleetAnswer {
  readonly nodes: number;
  readonly refused: readonly NodeAck[];
  /** Those that have not said anything yet: cut off, busy, or gone without a word. */
  readonly silent: readonly NodeAck[];
}

/** They say it 20 ms after they have heard of it; whoever has not heard of it does at its next poll. */
const PATIENCE_MS = 1000;
const PAUSE_MS = 25;

const NOBODY: FleetAnswer = { nodes: 0, refused: [], silent: [] };

/** Waits a moment for all of them; what has been written stays, whatever they say. */
export async function answerOfFleet(
  store: ConfigStore,
  clock: Clock,
  revision: number,
): Promise<FleetAnswer> {
  const until = clock.now() + PATIENCE_MS * 1000;
  try {
    for (;;) {
      const answer = answerIn(await store.acknowledgements(), revision);
      if (answer.silent.length === 0 || clock.now() >= until) return answer;
      await new Promise<void>((resolve) => clock.after(PAUSE_MS, resolve));
    }
  } catch (error) {
    if (error instanceof StoreUnavailableError) return NOBODY;
    throw error;
  }
}

function answerIn(nodes: readonly NodeAck[], wanted: number): FleetAnswer {
  const isSilent = ({ revision, about = 0 }: NodeAck): boolean =>
    Math.max(revision, about) < wanted;
  const isRefusal = ({ status, about }: NodeAck): boolean =>
    status === 'refused' && about === wanted;
  return {
    nodes: nodes.length,
    refused: nodes.filter(isRefusal),
    silent: nodes.filter(isSilent),
  };
}

/** Undefined if none has refused it. */
export function refusalIn({ nodes, refused }: FleetAnswer): string | undefined {
  if (refused.length === 0) return undefined;
  const reasons = [...new Set(refused.map(({ reason }) => reason ?? 'it does not say why'))];
  const isOne = refused.length === 1;
  return [
    `refused by ${refused.length} of ${processes(nodes)}, which ${isOne ? 'stays' : 'stay'} on what was:`,
    ...reasons.map((reason) => `  ${reason}`),
  ].join('\n');
}

/** Where none runs, nobody has refused it. */
export const isRefusedByAll = ({ nodes, refused }: FleetAnswer): boolean =>
  nodes > 0 && refused.length === nodes;

export const processes = (count: number): string =>
  count === 1 ? '1 process' : `${count} processes`;
