import { RestartNeededError } from '../common/errors.js';
import { type QuotaBook } from './quota-book.js';
import { type QuotaOptions } from './quota-options.js';

/** The part of a change that is about the quota. */
export interface QuotaChange {
  readonly revision: number;
  /** Undefined if there is none, now as before. */
  readonly quota?: QuotaOptions;
}

/** A limiter has a quota from the start or not at all: the local tier is built with it. */
export function prepareQuota(book: QuotaBook | undefined, change: QuotaChange): () => void {
  const { quota, revision } = change;
  if (book !== undefined) return book.prepare(quota, revision);
  if (quota !== undefined) throw new RestartNeededError('quota', quota, 'no quota');
  return () => {};
}
