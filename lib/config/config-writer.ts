import { StoreUnavailableError } from '../common/errors.js';
import { type ConfigDraft, type ConfigStore, type WrittenConfig } from '../stores/config-store.js';

/** So many others may have written before a lost answer is looked into. */
const LOOK_BACK = 50;

/**
 * Writes a draft once. If the answer is lost, the history tells what became of it; if it is not
 * there, the same draft is sent again, which a store never takes twice.
 */
export async function writeOnce(
  store: ConfigStore,
  draft: ConfigDraft,
  expectedRevision: number,
  above: number,
): Promise<WrittenConfig> {
  try {
    return await store.write(draft, expectedRevision, above);
  } catch (error) {
    if (!(error instanceof StoreUnavailableError)) throw error;
    const found = (await store.history(LOOK_BACK)).find(({ id }) => id === draft.id);
    if (found !== undefined) {
      return { written: true, revision: found.revision, nowMs: found.atMs };
    }
    return store.write(draft, expectedRevision, above);
  }
}
