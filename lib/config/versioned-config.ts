import { type Cancel, later } from '../common/clock.js';
import {
  errorText,
  InvalidArgumentError,
  InvalidConfigError,
  StoreUnavailableError,
  type ConfigIssue,
} from '../common/errors.js';
import { jitterAround } from '../common/jitter.js';
import {
  type JsonObject,
  MOST_REVISIONS,
  type NodeAck,
  type NodeFacts,
  type NodeReport,
  type StagedUpdate,
} from '../stores/config-store.js';
import { Acknowledger, TaskQueue } from './acknowledger.js';
import { AppliedConfig } from './applied-config.js';
import { ConfigChanges, type Change } from './config-changes.js';
import { spanOf, UnknownRevisionError } from './config-errors.js';
import {
  checkRevision,
  checkRollbackOptions,
  checkUpdate,
  DEFAULT_POLL_MS,
  effectiveAtMsOf,
  mustBeGiven,
  type ConfigSettings,
} from './config-settings.js';
import { ConfigSync, GRACE_MS } from './config-sync.js';
import { pathText } from './document/json.js';
import { NO_LAYERS, patched, rolledBack, unpatched } from './layers.js';
import { OwnLayers } from './own-layers.js';
import {
  RateLimitConfig,
  type ConfigConsumer,
  type ConfigSnapshot,
  type OwnConfig,
  type OwnLayer,
  type PastRevision,
  type RollbackOptions,
  type UpdateOptions,
  type ValidateOptions,
} from './rate-limit-config.js';
import { checkLayer, type ConfigLayer } from './schema/check.js';
import { snapshotOf, pastRevisions } from './snapshot.js';
import { isAhead, nameOf, stagedWith, waitingAgain, withStaged } from './staged-updates.js';
import { StoreTime } from './store-time.js';

/** All processes know when an update is due: one comes first, and saves the others the attempt. */
const SETTLING_SPREAD_MS = 20;
const DEFAULT_HISTORY = 20;

/** The configuration of one process of the fleet: its calls to the store run one after another. */
export class VersionedConfig extends RateLimitConfig {
  private readonly applied: AppliedConfig;
  private readonly own: OwnLayers;
  private readonly time: StoreTime;
  private readonly sync: ConfigSync;
  private readonly changes: ConfigChanges;
  private readonly turns = new TaskQueue();
  private readonly acks: Acknowledger;
  private readonly random: () => number;
  private readonly pollMs: number;
  private unsubscribe: Cancel = () => {};
  private cancelPoll: Cancel = () => {};
  private cancelSettling: Cancel = () => {};
  private facts: () => NodeFacts = () => ({});
  private ordered: () => void = () => {};
  private lookIsDue = false;
  private isAway = false;
  private closed = false;

  constructor(private readonly settings: ConfigSettings) {
    super();
    const { store, clock, nodeId, report, consumers = [] } = settings;
    this.random = settings.random ?? Math.random;
    this.pollMs = settings.pollMs ?? DEFAULT_POLL_MS;
    this.applied = new AppliedConfig(report);
    this.own = new OwnLayers(settings.service ?? DEFAULT_SERVICE, report);
    this.time = new StoreTime(clock);
    const { isVisitor } = settings;
    this.sync = new ConfigSync(store, this.applied, this.own, this.time, clock, nodeId, isVisitor);
    this.changes = new ConfigChanges(this.sync, this.applied);
    const said = (): NodeReport => ({ ...this.applied.nodeReport(nodeId), ...this.facts() });
    this.acks = new Acknowledger(settings, this.turns, this.pollMs, said);
    for (const consumer of consumers) this.applied.consume(consumer);
  }

  get changes$() {
    return this.applied.changes.asObservable();
  }

  get refused$() {
    return this.applied.refusals.asObservable();
  }

  current(): ConfigSnapshot {
    return this.applied.snapshot ?? BEFORE_THE_START;
  }

  /** Resolves once there is a configuration: the fleet's, or its own if the store is away. */
  async start(own: OwnConfig = this.settings): Promise<void> {
    this.own.set('code', own.code);
    this.own.set('file', own.file);
    snapshotOf(this.own.all(), 0);
    // Subscribed before the first read, so that no revision falls in between.
    this.unsubscribe = await this.settings.store.subscribe((revision) => this.hinted(revision));
    await this.turns.take(() => this.look());
    try {
      if (this.applied.snapshot === undefined) this.applied.useOwn(this.own.all());
    } catch (error) {
      await this.close();
      throw error;
    }
    this.pollLater();
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.settings.store.leave();
    this.unsubscribe();
    this.cancelPoll();
    this.cancelSettling();
    this.acks.close();
    await this.turns.over();
    await this.settings.store.withdraw(this.settings.nodeId).catch(() => {});
    await this.settings.store.close();
    this.applied.end();
  }

  async update(patch: ConfigLayer, options: UpdateOptions = {}): Promise<ConfigSnapshot> {
    checkUpdate(patch, options);
    const effectiveAtMs = effectiveAtMsOf(options);
    const { allowEmpty = false } = options;
    const given = checkLayer(patch, { allowEmpty: true, name: 'patch' });
    return this.change({
      ...{ allowEmpty, options },
      over: ({ layers, staged, revision: id, nowMs }) => {
        if (!isAhead(effectiveAtMs, nowMs)) {
          return { kind: 'update', layers: patched(layers, given), staged };
        }
        const by = options.by ?? this.settings.nodeId;
        const update = { ...{ id, by, effectiveAtMs, allowEmpty }, patch: given as JsonObject };
        return { kind: 'stage', layers, staged: withStaged(staged, update), about: nameOf(update) };
      },
    });
  }

  async rollback(revision: number, options: RollbackOptions = {}): Promise<ConfigSnapshot> {
    checkRollbackOptions(options);
    checkRevision(revision);
    const history = await this.settings.store.history(MOST_REVISIONS);
    const past = history.find((record) => record.revision === revision);
    if (past === undefined) throw new UnknownRevisionError(revision, spanOf(history));
    return this.change({
      ...{ allowEmpty: true, options },
      over: ({ layers, nowMs }) => ({
        ...{ kind: 'rollback', layers: rolledBack(layers, past) },
        staged: waitingAgain(past.staged, nowMs),
      }),
    });
  }

  async unset(path: readonly string[], options: RollbackOptions = {}): Promise<ConfigSnapshot> {
    checkRollbackOptions(options);
    return this.change({
      ...{ allowEmpty: true, options },
      over: ({ layers, staged }) => {
        const left = unpatched(layers, path);
        if (left !== undefined) return { kind: 'update', layers: left, staged };
        throw new InvalidArgumentError('path', pathText(path), 'an updated path');
      },
    });
  }

  async staged(): Promise<readonly StagedUpdate[]> {
    if (this.closed) throw CLOSED;
    await this.turns.take(() => this.sync.run());
    this.settleLater();
    return this.sync.staged;
  }

  async cancel(id: number, options: RollbackOptions = {}): Promise<ConfigSnapshot> {
    checkRollbackOptions(options);
    checkRevision(id, 'id');
    return this.change({
      ...{ allowEmpty: true, options },
      over: ({ layers, staged }) => {
        const about = stagedWith(staged, id);
        return {
          kind: 'cancel',
          layers,
          staged: staged.filter((one) => one !== about),
          about: nameOf(about),
        };
      },
    });
  }

  validate(input: unknown, { as = 'patch' }: ValidateOptions = {}): readonly ConfigIssue[] {
    try {
      mustBeGiven(as, input);
      const layer = checkLayer(input, { allowEmpty: as === 'patch', name: as });
      const layers = patched(as === 'patch' ? this.sync.layers : NO_LAYERS, layer);
      const known = this.applied.snapshot;
      this.applied.prepare(
        snapshotOf(layers, this.sync.revision + 1, { allowEmpty: false, known }),
      );
      return [];
    } catch (error) {
      if (error instanceof InvalidConfigError) return error.issues;
      const message = errorText(error);
      return [
        { path: '', value: undefined, expected: 'a configuration that can be used', message },
      ];
    }
  }

  async history(count = DEFAULT_HISTORY): Promise<PastRevision[]> {
    return pastRevisions(await this.settings.store.history(count + 1), count);
  }

  /** The pending report of this process goes first: the author of a change looks for it. */
  async nodes(): Promise<NodeAck[]> {
    await this.turns.take(() => this.acks.now());
    return this.settings.store.acknowledgements();
  }

  async isEveryoneOn(revision: number): Promise<boolean> {
    const nodes = await this.nodes();
    return nodes.length > 0 && nodes.every((node) => node.revision === revision);
  }

  get nodeId(): string {
    return this.settings.nodeId;
  }

  /** Adds facts to the report of this process. */
  describe(facts: () => NodeFacts): void {
    this.facts = facts;
  }

  /** Calls back when the store may hold an order for the processes. */
  whenOrdered(ordered: () => void): void {
    this.ordered = ordered;
  }

  consume(consumer: ConfigConsumer): void {
    this.applied.consume(consumer);
  }

  noticed(revision: number): void {
    if (this.sync.noticed(revision)) this.lookSoon();
  }

  replaceFile(layer: OwnLayer): void {
    this.own.set('file', layer);
    if (this.applied.snapshot?.revision === 0) this.applied.tryOwn(this.own.all());
    this.lookSoon();
  }

  /** The file cannot be read or is wrong: its last good content stays. */
  refuseFile(fault: Error): void {
    this.applied.refuseOwn(fault instanceof InvalidConfigError ? 'invalid' : 'unreadable', fault);
  }

  private change(change: Change): Promise<ConfigSnapshot> {
    if (this.closed) return Promise.reject(CLOSED);
    const written = this.turns.take(() => this.changes.write(change));
    void this.turns.take(() => this.afterChange());
    return written;
  }

  /** A message is a hint, never a record: anybody with access to the channel can send one. */
  private hinted(revision?: number): void {
    if (revision === undefined || revision !== this.sync.revision) this.lookSoon();
  }

  /** Changes that come while a look waits for its turn are seen by that look. */
  private lookSoon(): void {
    if (this.closed || this.lookIsDue) return;
    this.lookIsDue = true;
    void this.turns.take(() => this.look('soon'));
  }

  private pollLater(): void {
    if (this.closed) return;
    const delayMs = jitterAround(this.pollMs, this.random());
    this.cancelPoll = later(this.settings.clock, delayMs, () => {
      void this.turns.take(() => this.look('again')).then(() => this.pollLater());
    });
  }

  /**
   * A change comes to all processes at the same moment: those that have it leave the machine to the
   * others before they acknowledge it. A poll repeats the report, whether anything has changed or not.
   */
  private async look(acknowledge: 'now' | 'soon' | 'again' = 'now'): Promise<void> {
    this.lookIsDue = false;
    if (this.closed) return;
    try {
      await this.sync.run();
      if (this.isAway) this.settings.report.info('the configuration can be read again');
      this.isAway = false;
      if (this.sync.hasOrders) this.ordered();
    } catch (error) {
      if (!this.isAway) this.tellAway(error);
      this.isAway = true;
    }
    this.settleLater();
    if (this.isAway) return;
    if (acknowledge === 'soon') this.acks.soon();
    else await this.acks.now({ again: acknowledge === 'again' });
  }

  private tellAway(error: unknown): void {
    const { revision } = this.current();
    const kept =
      revision === 0
        ? 'what this process brings along stays in use, and without Redis each policy goes by its failureMode'
        : `revision ${revision} stays in use`;
    this.settings.report.warn(
      `the configuration cannot be read from Redis, ${kept}: ${errorText(error)}`,
    );
  }

  private afterChange(): Promise<void> {
    this.settleLater();
    this.acks.soon();
    return Promise.resolve();
  }

  /** An update that was due at the last look and could not be settled is tried again. */
  private settleLater(): void {
    this.cancelSettling();
    const [first] = this.sync.staged;
    if (first === undefined || this.closed) return;
    const aheadMs = Math.ceil(first.effectiveAtMs - this.time.nowMs());
    const delayMs = (aheadMs > 0 ? aheadMs : GRACE_MS) + SETTLING_SPREAD_MS * this.random();
    this.cancelSettling = later(this.settings.clock, delayMs, () => this.lookSoon());
  }
}

const DEFAULT_SERVICE = 'default';
const CLOSED = new StoreUnavailableError('the configuration is closed');
const BEFORE_THE_START: ConfigSnapshot = snapshotOf(NO_LAYERS, 0);
