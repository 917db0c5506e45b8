import { type LimitsChange } from './limits-change.js';
import { type QuotaRegistry } from './quota-registry.js';

/**
 * A limiter has a quota from the start or not at all: the local tier is built with it. One without is
 * not concerned: services that share a store need not all have one.
 */
export function prepareQuota(book: QuotaRegistry | undefined, change: LimitsChange): () => void {
  return book === undefined ? () => {} : book.prepare(change.quota, change.revision);
}
