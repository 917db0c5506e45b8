import { type Broken } from './fleet-view.js';
import { type History, type HistoryEvent } from './history.js';
import { runHistory } from './run-history.js';

export interface Shrunk {
  readonly history: History;
  readonly broken: Broken;
}

/** Leaves out events for as long as the same check still fails; undefined if none does. */
export async function shrink(
  history: History,
  run: (history: History) => Promise<{ broken: Broken | undefined }> = runHistory,
): Promise<Shrunk | undefined> {
  const first = (await run(history)).broken;
  if (first === undefined) return undefined;
  let best: Shrunk = { history: upTo(history, first.atMs), broken: first };
  const attempt = async (events: readonly HistoryEvent[]): Promise<boolean> => {
    const shorter = { ...history, events };
    const { broken } = await run(shorter);
    if (broken?.check !== first.check) return false;
    best = { history: upTo(shorter, broken.atMs), broken };
    return true;
  };
  for (let size = best.history.events.length; size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < best.history.events.length;) {
      const { events } = best.history;
      const isShorter = await attempt([...events.slice(0, at), ...events.slice(at + size)]);
      if (!isShorter) at += size;
    }
  }
  return best;
}

/** Events after the failure had no part in it. */
function upTo(history: History, atMs: number): History {
  return { ...history, events: history.events.filter((event) => event.atMs <= atMs) };
}

/** A history in a few lines, as `readHistory` reads it back. */
export function describeHistory({ history, broken }: Shrunk): string {
  const { seed, plan, events } = history;
  const head = `${broken.check} at ${Math.round(broken.atMs)} ms: ${broken.detail}`;
  return [head, JSON.stringify({ seed, plan }), ...events.map((one) => JSON.stringify(one))].join(
    '\n',
  );
}

/** The history of such a description. */
export function readHistory(description: string): History {
  const [, head, ...events] = description.trim().split('\n');
  const { seed, plan } = JSON.parse(head!) as Pick<History, 'seed' | 'plan'>;
  return { seed, plan, events: events.map((line) => JSON.parse(line) as HistoryEvent) };
}
