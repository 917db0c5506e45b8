import { Subject } from 'rxjs';
import { type ConfigLayers, type ConfigRecord, type NodeReport } from '../stores/index.js';
import { inWords } from './config-errors.js';
import { diff, type ConfigDiff } from './document/index.js';
import {
  type ConfigChange,
  type ConfigConsumer,
  type ConfigRefusal,
  type ConfigSnapshot,
} from './rate-limit-config.js';
import { type Report } from './report.js';
import { snapshotOf } from './snapshot.js';

/** What the store has, as it was read. */
export interface Adoption {
  readonly current: ConfigRecord;
  readonly previous?: ConfigRecord | undefined;
}

/** A snapshot that everything has prepared for, as things stood then. */
interface Prepared {
  readonly next: ConfigSnapshot;
  /** Of each consumer that there was. */
  readonly commits: readonly (() => void)[];
  readonly from: ConfigSnapshot | undefined;
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
  private waiting: ConfigRecord | undefined;
  private refusal: ConfigRefusal | undefined;
  private ready: Prepared | undefined;
  /** The record that is applied; none for revision 0. */
  record: ConfigRecord | undefined;

  constructor(private readonly report: Report) {}

  get snapshot(): ConfigSnapshot | undefined {
    return this.applied;
  }

  /** The revision that waits for its time. */
  get staged(): ConfigRecord | undefined {
    return this.waiting;
  }

  consume(consumer: ConfigConsumer): void {
    if (this.applied !== undefined) consumer.prepare(this.applied, undefined)();
    this.consumers.add(consumer);
  }

  /** Throws if a part of this process cannot work with it; changes nothing. */
  prepare(next: ConfigSnapshot): Prepared {
    const from = this.applied;
    const commits: (() => void)[] = [];
    for (const consumer of this.consumers) commits.push(consumer.prepare(next, from));
    return (this.ready = { next, commits, from });
  }

  /** What this process brought along, while it knows of nothing else. Throws if it is of no use. */
  useOwn(layers: ConfigLayers): void {
    const prepared = this.prepare(snapshotOf(layers, 0));
    const ofFleet =
      this.refusal !== undefined && this.refusal.revision > 0 ? this.refusal : undefined;
    this.swap(prepared, undefined);
    this.refusal = ofFleet;
  }

  /** The same for what has changed later: it may be of no use, then what was stays. */
  tryOwn(layers: ConfigLayers): void {
    try {
      this.useOwn(layers);
    } catch (error) {
      this.refuse({ revision: 0, kind: 'invalid', reason: inWords(error), error });
    }
  }

  /** Takes what the store has, unless it is known or older; stages what is not due yet. */
  adopt({ current, previous }: Adoption, nowMs: number): void {
    if (!this.isNews(current)) return this.takeDue(nowMs);
    const isDue = current.effectiveAtMs <= nowMs;
    if (previous && !isDue && this.isNews(previous)) this.apply(previous);
    if (isDue) this.apply(current);
    else this.stage(current);
    // Who has nothing yet is better off with the last revision than with none of the fleet's.
    if (this.applied === undefined && previous) this.applyInstead(previous);
  }

  /** Changes over to the staged revision if its time has come. */
  takeDue(nowMs: number): void {
    if (this.waiting !== undefined && this.waiting.effectiveAtMs <= nowMs) this.apply(this.waiting);
  }

  /** The last good one stays, and that is told once. */
  refuse(refusal: ConfigRefusal): void {
    const { revision, kind, reason } = refusal;
    const isKnown = this.refusal?.revision === revision && this.refusal.reason === reason;
    this.refusal = refusal;
    if (isKnown) return;
    const { applied } = this;
    const then = applied ? `, revision ${applied.revision} stays in use` : ' and is left out';
    this.report.error(`revision ${revision} is ${kind}${then}: ${reason}`);
    this.refusals.next(refusal);
  }

  /** What this process brings along is of no use; that it is left out is told elsewhere. */
  refuseOwn(kind: ConfigRefusal['kind'], error: unknown): void {
    this.refusals.next({ revision: 0, kind, reason: inWords(error), error });
  }

  nodeReport(node: string): NodeReport {
    const revision = this.applied?.revision ?? 0;
    if (this.waiting) return { node, revision, status: 'staged', about: this.waiting.revision };
    if (this.refusal === undefined) return { node, revision, status: 'applied' };
    const { revision: about, reason } = this.refusal;
    return { node, revision, status: 'refused', about, reason };
  }

  end(): void {
    this.changes.complete();
    this.refusals.complete();
  }

  private isNews({ id, revision }: ConfigRecord): boolean {
    const newest = this.waiting?.revision ?? 0;
    const isKnown = id === this.waiting?.id || this.isRefused(revision);
    return !isKnown && revision > Math.max(newest, this.applied?.revision ?? 0);
  }

  private isRefused(revision: number): boolean {
    return this.refusal?.kind === 'invalid' && this.refusal.revision === revision;
  }

  private apply(record: ConfigRecord): void {
    const prepared = this.prepared(record);
    if (prepared !== undefined) this.swap(prepared, record);
  }

  /** For one that was refused: that is what there is to be told, whatever becomes of the other. */
  private applyInstead(record: ConfigRecord): void {
    const { refusal } = this;
    try {
      this.swap(this.prepare(snapshotOf(record, record.revision)), record);
    } catch {
      // The same may be wrong with both.
    }
    this.refusal = refusal;
  }

  /** Whatever would keep it from being used is told now, and not at the moment it takes effect. */
  private stage(record: ConfigRecord): void {
    const prepared = this.prepared(record);
    if (prepared === undefined) return;
    this.refusal = undefined;
    this.setWaiting(record);
    const at = new Date(record.effectiveAtMs).toISOString();
    this.report.info(`revision ${record.revision} by ${record.by} takes effect at ${at}`);
  }

  private prepared(record: ConfigRecord): Prepared | undefined {
    const { revision } = record;
    try {
      const ready = this.readyFor(record);
      return (
        ready ??
        this.prepare(snapshotOf(record, revision, { allowEmpty: true, known: this.applied }))
      );
    } catch (error) {
      // It replaces what was staged, though it is of no use here.
      this.setWaiting(undefined);
      this.refuse({ revision, kind: 'invalid', reason: inWords(error), error });
      return undefined;
    }
  }

  /** Who writes a revision has prepared for it before. */
  private readyFor({ revision, hash }: ConfigRecord): Prepared | undefined {
    const { ready, applied, consumers } = this;
    const isFor = ready?.next.revision === revision && ready.next.hash === hash;
    return isFor && ready.from === applied && ready.commits.length === consumers.size
      ? ready
      : undefined;
  }

  private swap({ commits, next: to }: Prepared, record: ConfigRecord | undefined): void {
    const from = this.applied;
    this.ready = undefined;
    for (const commit of commits) this.commit(commit);
    this.applied = to;
    this.record = record;
    this.refusal = undefined;
    const isOver = this.waiting !== undefined && to.revision >= this.waiting.revision;
    if (this.waiting !== undefined) this.setWaiting(isOver ? undefined : this.waiting);
    if (from === undefined) return;
    this.changes.next(changeOf(from, to, record));
    this.report.info(`revision ${to.revision} by ${record?.by ?? 'this process'} is in use`);
  }

  private setWaiting(record: ConfigRecord | undefined): void {
    this.waiting = record;
    if (this.applied === undefined) return;
    const { staged: _staged, ...snapshot } = this.applied;
    const staged = record && { revision: record.revision, effectiveAtMs: record.effectiveAtMs };
    this.applied = Object.freeze(staged ? { ...snapshot, staged } : snapshot);
  }

  /** A commit has no right to fail; if one does, the others still follow. */
  private commit(commit: () => void): void {
    try {
      commit();
    } catch (error) {
      this.report.error(`a part could not change over, which is a bug: ${inWords(error)}`);
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
  // A field of its own, not of a class: people write changes down and copy them.
  return {
    ...{ from, to, ...(record && { record }) },
    get diff() {
      return (found ??= diff(from.document, to.document));
    },
  };
}
