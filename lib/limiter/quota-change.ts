import { RestartNeededError } from '../common/errors.js';
import { type LimitsChange } from './limits-change.js';
import { type QuotaBook } from './quota-book.js';

/** A limiter has a quota from the start or not at all: the local tier is built with it. */
export function prepareQuota(book: QuotaBook | undefined, change: LimitsChange): () => void {
  const { quota, revision } = change;
  if (book !== undefined) return book.prepare(quota, revision);
  if (quota !== undefined) throw new RestartNeededError('quota', quota, 'no quota');
  return () => {};
}
