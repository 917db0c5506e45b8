import { type WarmUpReport } from './contract.js';

/** Loads at a time: a warm-up must not be the overload that it is meant for. */
const AT_ONCE = 8;

/** Loads every key and stores what came. One that fails keeps none of the others. */
export async function warmUp(
  keys: Iterable<string>,
  load: (key: string) => unknown,
  store: (key: string, body: unknown) => boolean,
): Promise<WarmUpReport> {
  const report = { loaded: 0, skipped: 0, failed: 0 };
  const rest = new Set(keys).values();
  const work = async (): Promise<void> => {
    for (let next = rest.next(); !next.done; next = rest.next()) {
      try {
        const body = await load(next.value);
        const isStored = body !== undefined && store(next.value, body);
        report[isStored ? 'loaded' : 'skipped']++;
      } catch {
        report.failed++;
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return report;
}
