import { type ConfigUpdate } from '../algorithms/quota/quota-messages.js';
import { type ConfigRecord } from '../stores/config-store.js';
import { type ConfigSnapshot } from './rate-limit-config.js';
import { type AppDocument } from './schema/document.schema.js';

/** The messages that a change amounts to: one for each app that has other figures from now on. */
export function configUpdates(
  { document: { apps: before = {} } }: ConfigSnapshot,
  { revision, document: { apps: after = {} } }: ConfigSnapshot,
  record: ConfigRecord | undefined,
): readonly ConfigUpdate[] {
  const effectiveAtMs = record === undefined ? 0 : record.effectiveAtMs || record.atMs;
  return Object.keys(after).flatMap((app): ConfigUpdate[] => {
    const { guaranteed, burst } = figuresOf(after[app]!);
    const old = Object.hasOwn(before, app) ? figuresOf(before[app]!) : undefined;
    if (old?.guaranteed === guaranteed && old.burst === burst) return [];
    return [{ type: 'config_update', app, guaranteed, burst, effectiveAtMs, revision }];
  });
}

function figuresOf({ guaranteed = 0, burst = guaranteed }: AppDocument) {
  return { guaranteed, burst };
}
