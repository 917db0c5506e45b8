import { type WarmUpReport } from './contract.js';

/** Loads at a time: a warm-up must not be the overload that it is meant for. */
const AT_ONCE = 8;

/**
 * Loads every key and stores what came. One that fails keeps none of the others, and neither does a list
 * that breaks off. `failed` hears of both.
 */
export async function warmUp(
  keys: Iterable<string> | AsyncIterable<string>,
  load: (key: string) => unknown,
  store: (key: string, body: unknown) => boolean | Promise<boolean>,
  failed: (error: unknown) => void = () => {},
): Promise<WarmUpReport> {
  const report = { loaded: 0, skipped: 0, failed: 0 };
  const rest = unique(keys);
  const work = async (): Promise<void> => {
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
      const key = next.value;
      try {
        const body = await load(key);
        const isStored = body !== undefined && (await store(key, body));
        report[isStored ? 'loaded' : 'skipped']++;
      } catch (error) {
        report.failed++;
        failed(error);
      }
    }
  };
  const broke = (error: unknown): void => {
    report.failed++;
    failed(error);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, () => work().catch(broke)));
  return report;
}

/** Several may ask an async generator at once: they are answered in their turn. */
async function* unique(keys: Iterable<string> | AsyncIterable<string>): AsyncGenerator<string> {
  const seen = new Set<string>();
  for await (const key of keys) {
    if (seen.has(key)) continue;
    seen.add(key);
    yield key;
  }
}
