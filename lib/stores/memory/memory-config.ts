import { type Clock } from '../../common/clock.js';
import {
  type ConfigDraft,
  type ConfigRecord,
  type ConfigStore,
  decodeRecord,
  encodeDraft,
  MOST_HISTORY_BYTES,
  MOST_REVISIONS,
  type NodeAck,
  type NodeReport,
  readableAcks,
  readableRecords,
  shortened,
  type StoredConfig,
  type WrittenConfig,
} from '../config-store.js';

interface StoredRevision {
  readonly revision: number;
  readonly id: string;
  readonly text: string;
}

/** The configuration of a fleet that is one process. Kept as text, so that no caller can change it. */
export class MemoryConfig implements ConfigStore {
  /** Newest first. */
  private entries: StoredRevision[] = [];
  private readonly acks = new Map<string, { readonly text: string; readonly untilMs: number }>();
  /** Listeners of the library itself, one event: an EventHub would catch and name what none of them throws. */
  private readonly hints = new Set<(revision?: number) => void>();

  constructor(private readonly clock: Pick<Clock, 'now' | 'epochMs'>) {}

  async read(known?: string): Promise<StoredConfig> {
    await Promise.resolve();
    const nowMs = this.nowMs();
    const [current, previous] = this.entries;
    if (current === undefined) return { revision: 0, unchanged: false, nowMs };
    const { revision } = current;
    if (current.id === known) return { revision, unchanged: true, nowMs };
    return {
      revision,
      unchanged: false,
      current: recordOf(current),
      ...(previous && { previous: recordOf(previous) }),
      nowMs,
    };
  }

  async write(draft: ConfigDraft, expectedRevision: number, above = 0): Promise<WrittenConfig> {
    const body = encodeDraft(draft);
    await Promise.resolve();
    const nowMs = this.nowMs();
    const [current] = this.entries;
    const stored = current?.revision ?? 0;
    if (current?.id === draft.id) return { written: true, revision: stored, nowMs };
    if (stored !== expectedRevision) return { written: false, revision: stored, nowMs };
    const revision = Math.max(expectedRevision, above) + 1;
    const text = `{"revision":${revision},"atMs":${nowMs},${body.slice(1)}`;
    this.entries = trimmed([{ revision, id: draft.id, text }, ...this.entries]);
    for (const hint of this.hints) queueMicrotask(() => hint(revision));
    return { written: true, revision, nowMs };
  }

  history(count: number): Promise<ConfigRecord[]> {
    return Promise.resolve(readableRecords(this.entries.slice(0, count).map(({ text }) => text)));
  }

  acknowledge(report: NodeReport, ttlMs: number): Promise<void> {
    const atMs = this.nowMs();
    const { reason } = report;
    const ack = { ...report, ...(reason !== undefined && { reason: shortened(reason) }), atMs };
    this.acks.set(report.node, { text: JSON.stringify(ack), untilMs: atMs + ttlMs });
    return Promise.resolve();
  }

  leave(): void {}

  withdraw(node: string): Promise<void> {
    this.acks.delete(node);
    return Promise.resolve();
  }

  acknowledgements(): Promise<NodeAck[]> {
    const nowMs = this.nowMs();
    for (const [node, { untilMs }] of this.acks) if (untilMs <= nowMs) this.acks.delete(node);
    return Promise.resolve(readableAcks([...this.acks.values()].map(({ text }) => text)));
  }

  subscribe(hint: (revision?: number) => void): Promise<() => void> {
    this.hints.add(hint);
    return Promise.resolve(() => void this.hints.delete(hint));
  }

  close(): Promise<void> {
    this.hints.clear();
    return Promise.resolve();
  }

  private nowMs(): number {
    return Math.floor(this.clock.epochMs(this.clock.now()));
  }
}

function recordOf({ text, revision }: StoredRevision): ConfigRecord {
  return decodeRecord(text, revision) as ConfigRecord;
}

function trimmed(entries: StoredRevision[]): StoredRevision[] {
  let bytes = 0;
  const fits = ({ text }: StoredRevision, index: number): boolean => {
    bytes += Buffer.byteLength(text);
    // The two newest are more than history: one may hold while the other waits.
    return index < 2 || (index < MOST_REVISIONS && bytes <= MOST_HISTORY_BYTES);
  };
  return entries.filter(fits);
}
