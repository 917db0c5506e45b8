import { errorText } from '../common/errors.js';
import { Subject } from 'rxjs';
import { type ConfigUpdate } from '../limiter/events.js';
import { type ConfigLayers, type ConfigRecord, type NodeReport } from '../stores/config-store.js';
import { diff, type ConfigDiff } from './document/diff.js';
import {
  type ConfigChange,
  type ConfigConsumer,
  type ConfigRefusal,
  type ConfigSnapshot,
} from './rate-limit-config.js';
import { type Report } from '../common/report.js';
import { snapshotOf } from './snapshot.js';
import { updateText, prospects } from './staged-updates.js';
import { type AppDocument } from './schema/document.schema.js';

/** A snapshot that every consumer has prepared for. */
interface Prepared {
  readonly next: ConfigSnapshot;
  readonly commits: readonly (() => void)[];
}

/**
 * The configuration of this process. A revision goes through two phases: everything that works with
 * it prepares, and may refuse; then all change over, one after another, with nothing in between. So
 * there is never a mix of two, and a refused one leaves no trace but a word.
 */
export class AppliedConfig {
  readonly changes = new Subject<ConfigChange>();
  readonly refusals = new Subject<ConfigRefusal>();
  private readonly consumers = new Set<ConfigConsumer>();
  private applied: ConfigSnapshot | undefined;
  private refusal: ConfigRefusal | undefined;
  /** Warnings about staged updates that were logged already. */
  private warned = new Set<string>();
  /** The record that is applied; none for revision 0. */
  record: ConfigRecord | undefined;

  constructor(private readonly report: Report) {}

  get snapshot(): ConfigSnapshot | undefined {
    return this.applied;
  }

  consume(consumer: ConfigConsumer): void {
    if (this.applied !== undefined) consumer.prepare(this.applied, undefined)();
    this.consumers.add(consumer);
  }

  /** Throws if a part of this process cannot work with it; changes nothing. */
  prepare(next: ConfigSnapshot): Prepared {
    const commits: (() => void)[] = [];
    for (const consumer of this.consumers) commits.push(consumer.prepare(next, this.applied));
    return { next, commits };
  }

  /** The process's own layers, while it knows of no revision. Throws if they cannot be used. */
  useOwn(layers: ConfigLayers): void {
    const prepared = this.prepare(snapshotOf(layers, 0));
    const ofFleet =
      this.refusal !== undefined && this.refusal.revision > 0 ? this.refusal : undefined;
    this.swap(prepared, undefined);
    this.refusal = ofFleet;
  }

  /** Own layers that have changed later: if they cannot be used, the earlier ones stay. */
  tryOwn(layers: ConfigLayers): void {
    try {
      this.useOwn(layers);
    } catch (error) {
      this.refuse({ revision: 0, kind: 'invalid', reason: errorText(error), error });
    }
  }

  /** Takes what the store has, unless it is known or older. */
  adopt(current: ConfigRecord, previous?: ConfigRecord): void {
    if (!this.isNews(current)) return;
    this.apply(current);
    // A process without any revision is better off with the last one than with none of the fleet's.
    if (this.applied === undefined && previous) this.applyInstead(previous);
    if (this.record === current) this.lookAhead(current);
  }

  /** The last good revision stays; each refusal is logged once. */
  refuse(refusal: ConfigRefusal): void {
    const { revision, kind, reason } = refusal;
    const isKnown = this.refusal?.revision === revision && this.refusal.reason === reason;
    this.refusal = refusal;
    if (isKnown) return;
    const { applied } = this;
    const kept = applied && `revision ${applied.revision} stays in use`;
    this.report.error(
      kind === 'lost'
        ? `revision ${revision} is lost, as ${reason}: ${kept ? `${kept} and` : 'it'} is written to it again`
        : `revision ${revision} is ${kind}${kept ? `, ${kept}` : ' and is left out'}: ${reason}`,
    );
    this.refusals.next(refusal);
  }

  /** The process's own layer cannot be used; its owner logs that it is left out. */
  refuseOwn(kind: ConfigRefusal['kind'], error: unknown): void {
    this.refusals.next({ revision: 0, kind, reason: errorText(error), error });
  }

  nodeReport(node: string): NodeReport {
    const revision = this.applied?.revision ?? 0;
    if (this.refusal === undefined) return { node, revision, status: 'applied' };
    const { revision: about, reason } = this.refusal;
    return { node, revision, status: 'refused', about, reason };
  }

  end(): void {
    this.changes.complete();
    this.refusals.complete();
  }

  private isNews({ revision }: ConfigRecord): boolean {
    return !this.isRefused(revision) && revision > (this.applied?.revision ?? 0);
  }

  private isRefused(revision: number): boolean {
    return this.refusal?.kind === 'invalid' && this.refusal.revision === revision;
  }

  private apply(record: ConfigRecord): void {
    const prepared = this.prepared(record);
    if (prepared !== undefined) this.swap(prepared, record);
  }

  /** In place of a revision that was refused: that refusal stays the node's report. */
  private applyInstead(record: ConfigRecord): void {
    const { refusal } = this;
    try {
      this.swap(this.prepare(snapshotOf(record, record.revision)), record);
    } catch {
      // The same may be wrong with both.
    }
    this.refusal = refusal;
  }

  /**
   * A staged update that could not be applied is reported now, and not only when its time comes: as a refusal
   * while it is being staged, as a warning if a later change made it so.
   */
  private lookAhead({ staged, kind, about, revision, ...layers }: ConfigRecord): void {
    const known = this.applied;
    const all = prospects(layers, staged, (then, { allowEmpty }) => {
      this.prepare(snapshotOf(then, revision + 1, { allowEmpty, known }));
    });
    const before = this.warned;
    this.warned = new Set();
    for (const { update, fault } of all) {
      if (fault === undefined) continue;
      const reason = `${updateText(update)} does not fit: ${errorText(fault)}`;
      this.warned.add(reason);
      if (before.has(reason)) continue;
      if (kind === 'stage' && update.id === about?.id)
        this.refuse({ revision, kind: 'staged', reason, error: fault });
      else this.report.warn(`${reason}; it is left out when its time comes, unless that changes`);
    }
  }

  private prepared(record: ConfigRecord): Prepared | undefined {
    const { revision } = record;
    try {
      return this.prepare(snapshotOf(record, revision, { allowEmpty: true, known: this.applied }));
    } catch (error) {
      this.refuse({ revision, kind: 'invalid', reason: errorText(error), error });
      return undefined;
    }
  }

  private swap({ commits, next }: Prepared, record: ConfigRecord | undefined): void {
    const from = this.applied;
    for (const commit of commits) this.commit(commit);
    const staged = record?.staged ?? [];
    const to = staged.length === 0 ? next : Object.freeze({ ...next, staged });
    this.applied = to;
    this.record = record;
    this.refusal = undefined;
    if (from === undefined) return;
    this.changes.next(changeOf(from, to, record));
    this.tell(to, record);
  }

  private tell({ revision }: ConfigSnapshot, record: ConfigRecord | undefined): void {
    const { kind, about, by = 'this process', reason = '' } = record ?? {};
    if (about === undefined) return this.report.info(`revision ${revision} by ${by} is in use`);
    const update = updateText(about);
    if (kind === 'stage') return this.report.info(`revision ${revision}: ${update} is staged`);
    if (kind === 'cancel')
      return this.report.info(`revision ${revision}: ${by} cancelled ${update}`);
    if (kind === 'update') return this.report.info(`revision ${revision} is in use: ${update}`);
    this.report.error(
      `revision ${revision}: ${update} does not fit any more, and is left out: ${reason}`,
    );
    this.refusals.next({ revision: about.id, kind: 'staged', reason });
  }

  /** A commit has no right to fail; if one does, the others still follow. */
  private commit(commit: () => void): void {
    try {
      commit();
    } catch (error) {
      this.report.error(`a part could not change over, which is a bug: ${errorText(error)}`);
    }
  }
}

/** Most who hear of a change do not ask what it was: that is found out for the first who does. */
function changeOf(
  from: ConfigSnapshot,
  to: ConfigSnapshot,
  record: ConfigRecord | undefined,
): ConfigChange {
  let found: ConfigDiff | undefined;
  let updates: readonly ConfigUpdate[] | undefined;
  // A field of its own, not of a class: people write changes down and copy them.
  return {
    ...{ from, to, ...(record && { record }) },
    get diff() {
      return (found ??= diff(from.document, to.document));
    },
    get updates() {
      return (updates ??= configUpdates(from, to, record));
    },
  };
}

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
