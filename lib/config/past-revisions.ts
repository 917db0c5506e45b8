import { type ConfigRecord } from '../stores/config-store.js';
import { diff } from './document/diff.js';
import { effective } from './document/effective.js';
import { joined } from './layers.js';
import { type PastRevision } from './rate-limit-config.js';
import { type ConfigDocument } from './schema/document.schema.js';

/** Each with what it changed; for that the one before it is needed, so bring one more. */
export function pastRevisions(records: readonly ConfigRecord[], count: number): PastRevision[] {
  const documents = records.map((record) => effective(joined(record) as ConfigDocument));
  return records.slice(0, count).map((record, index) => {
    const isFirst = record.revision === 1;
    const before = isFirst ? {} : documents[index + 1];
    if (before === undefined) return record;
    return { ...record, diff: diff(before, documents[index]) };
  });
}
