import { randomBytes } from 'node:crypto';
import { type Clock } from '../../common/clock.js';
import { spread } from '../../common/ids.js';
import { type BoardStore } from '../../stores/board-store.js';
import { type JoinedCondition } from '../node-condition.js';
import { type SeriesHistory } from '../series-history.js';
import { type SeriesTable } from '../series-table.js';
import { type Horizon } from '../series.js';
import {
  learningOf,
  stateOf,
  type FleetState,
  type SeriesState,
  type WatchedState,
} from '../state.js';
import { FleetMarks } from './fleet-marks.js';
import { FleetHistory } from './history.js';
import { FleetMerge } from './merge.js';
import { decodeMerged, encodeMerged, unreadableText } from './merged.js';
import { decodeSnapshot, encodeSnapshot, type NodeSnapshot } from './snapshot.js';

/** Time between two writes of figures: less while somebody looks, more where many nodes write theirs alone. */
const PERIOD_MS = 5000;
/** Figures go along with another call after so long. The configuration is read every 5 s, or a fifth earlier. */
const ALONG_AFTER_MICROS = 3_500_000;
/** Figures go alone after so long without such a call. */
const ALONE_AFTER_MICROS = 10_000_000;
/** The most writes of figures that go alone while nobody looks: each wakes Redis, which takes far longer than the writing. */
const QUIET_WRITES_PER_SECOND = 50;
const LONGEST_PERIOD_MS = 20_000;
/** Watched, each node writes once a second; of many nodes so many a second in all. */
const WRITES_PER_SECOND = 200;
const LEAST_KEPT_MS = 15_000;
const TERM_MS = 5000;
const RENEW_MICROS = 2_000_000;
const WATCH_KEPT_MS = 15_000;
const WATCH_AGAIN_MICROS = 5_000_000;
const SALT_KEPT_MS = 8 * 24 * 3_600_000;
const SALT_BYTES = 16;
/** Snapshots that are asked for at once: Redis takes 0.1 ms for them. */
const PER_READ = 100;
/** Parsing a thousand snapshots in one go blocks for up to 100 ms, measured; so many take 2. */
const PER_TURN = 25;
/** Large ones, or a busy machine: the rest of them waits for the next turn. */
const TURN_MICROS = 1000;
const MOST_NODES_SHOWN = 200;
const SECOND_MICROS = 1_000_000;
/** Ticks come when a second begins, or a moment before: a turn is of whole seconds, so that none is skipped for that. */
const EARLY_MICROS = 250_000;
/** A node that starts is of interest: so many turns are those of a fleet that is looked at. */
const FIRST_TURNS = 3;

/** The parts of a fleet. */
export interface FleetDeps {
  readonly nodeId: string;
  readonly board: BoardStore;
  readonly clock: Clock;
  readonly maxSeries: number;
  /** This node's own figures. */
  snapshot(): NodeSnapshot;
  /** Number of nodes, as far as this one knows. */
  nodes(): number;
  /** Whether an alert is pending or firing: then figures come more often. */
  isAlarmed(): boolean;
  /** The facts that only the node that merges knows, beside figures. */
  about(seen: FleetSeen): Promise<FleetContext> | FleetContext;
  /** This node merges from now on; before it does so for the first time. The instant is microseconds since 1970. */
  leads?(epochMicros: number): Promise<void>;
  /** Another one merges, or nobody. */
  follows?(): void;
  /** Hashes of keys are made with this, so that all nodes show the same. */
  useSalt(salt: Uint8Array): void;
  /** A turn has failed; the next one is tried all the same. */
  failed(error: unknown): void;
}

/** The merged figures. */
export interface FleetSeen {
  readonly merge: FleetMerge;
  readonly condition: JoinedCondition;
  readonly series: readonly SeriesState[];
  /** On the clock of the merged rings: microseconds since 1970. */
  readonly epochMicros: number;
}

export type FleetContext = Pick<WatchedState, 'cluster' | 'quota' | 'alerts' | 'marks' | 'store'>;

/**
 * The fleet on any node: each writes its figures to the board, one merges them, and any can read the result. The store
 * is asked by a timer of each node, never by viewers; so the cost does not grow with them.
 */
export class Fleet {
  isLeading = false;
  /** The figures of all nodes; undefined while this one does not lead. */
  merge: FleetMerge | undefined;
  private readonly offsetSeconds: number;
  private periodMs = PERIOD_MS;
  private turnOf = -1;
  private isBusy = false;
  private wroteAt = -Infinity;
  /** When figures last went along with another call. */
  private alongAt = -Infinity;
  private readonly stopGoingAlong: () => void;
  private leadAt = -Infinity;
  private firstTurns = FIRST_TURNS;
  /** When the last look at all nodes was that told their rates, or the first of all. */
  private mergedAt = 0;
  /** The figures of all nodes are rates: there was an earlier one of each to compare with. */
  private hasRates = false;
  /** The merge of before a turn that failed: within the term nobody else has led, so the next turn goes on with it. */
  private kept: { readonly merge: FleetMerge; readonly untilMicros: number } | undefined;
  private own: FleetState | undefined;
  private read: { readonly state: FleetState | undefined; readonly atMicros: number } | undefined;
  private watchedAt = -Infinity;
  private hasSalt = false;
  private readonly history: FleetHistory;
  private readonly marks: FleetMarks;
  private turn: Promise<void> = Promise.resolve();
  private closed = false;

  constructor(private readonly deps: FleetDeps) {
    this.offsetSeconds = spread(deps.nodeId, LONGEST_PERIOD_MS / 1000);
    this.history = new FleetHistory(deps.board, deps.clock, deps.maxSeries);
    this.marks = new FleetMarks(deps.board);
    this.stopGoingAlong = deps.board.onOtherCall(() => this.goAlong(deps.clock.now()));
  }

  /** A second has passed. */
  tick(nowMicros: number): void {
    if (this.isBusy || this.closed) return;
    const second = Math.floor((nowMicros + EARLY_MICROS) / SECOND_MICROS) + this.offsetSeconds;
    const turnOf = Math.floor((second * 1000) / this.periodMs);
    const isDue = turnOf !== this.turnOf && !this.waitsForCompany(nowMicros);
    const mustRenew = this.isLeading && nowMicros - this.leadAt >= RENEW_MICROS;
    if (!isDue && !mustRenew) return;
    this.turnOf = turnOf;
    this.begin(nowMicros, isDue);
  }

  /** Resolves when the turn that goes on is over. */
  settled(): Promise<void> {
    return this.turn;
  }

  /** The fleet as it was merged last; undefined if nobody has of late, or the store cannot be read. */
  async state(): Promise<FleetState | undefined> {
    const now = this.deps.clock.now();
    const { board } = this.deps;
    try {
      await this.watch(now);
      if (this.isLeading && this.own !== undefined) return this.own;
      if (this.read !== undefined && now - this.read.atMicros < 1_000_000) return this.read.state;
      const text = await board.get('merged');
      const found = text === undefined ? undefined : decodeMerged(text);
      if (typeof found === 'string') this.deps.failed(new Error(unreadableText(found)));
      this.read = { state: typeof found === 'string' ? undefined : found, atMicros: now };
      if (this.read.state !== undefined) this.history.seen(this.read.state);
      return this.read.state;
    } catch (error) {
      this.deps.failed(error);
      return this.read?.state;
    }
  }

  /** The fleet as this process has merged or read it last, however long ago: while the store is away there is no other. */
  get lastSeen(): FleetState | undefined {
    const { own } = this;
    const read = this.read?.state;
    return (read?.atMs ?? 0) > (own?.atMs ?? 0) ? read : own;
  }

  /** A series of the whole fleet; undefined if there is none, or the store cannot be read. */
  async historyOf(name: string, horizon: Horizon): Promise<SeriesHistory | undefined> {
    try {
      return await this.history.of(name, horizon, this.merge);
    } catch (error) {
      this.deps.failed(error);
      return undefined;
    }
  }

  /** All that is kept of the fleet; undefined if the store cannot be read. */
  async table(horizon: 'minutes' | 'hours'): Promise<SeriesTable | undefined> {
    if (this.merge !== undefined) return this.merge.table;
    try {
      return await this.history.tableOf(horizon);
    } catch (error) {
      this.deps.failed(error);
      return undefined;
    }
  }

  /** The node leaves: nobody waits for its figures, and the next one may lead. */
  async close(): Promise<void> {
    this.closed = true;
    this.stopGoingAlong();
    await this.turn;
    const { board, nodeId } = this.deps;
    try {
      await board.remove(nodeId);
      if (this.isLeading) await board.resign();
    } catch {
      // Both end by themselves.
    }
    board.close();
  }

  /** Another call is on its way. Whoever leads keeps to its turns. */
  private goAlong(nowMicros: number): void {
    if (this.isBusy || this.closed || this.isLeading || !this.hasSalt) return;
    if (nowMicros - this.wroteAt < ALONG_AFTER_MICROS) return;
    this.alongAt = nowMicros;
    this.begin(nowMicros, true);
  }

  private waitsForCompany(nowMicros: number): boolean {
    const isClose = this.periodMs < PERIOD_MS;
    return !this.isLeading && !isClose && nowMicros - this.alongAt < ALONE_AFTER_MICROS;
  }

  private begin(nowMicros: number, isDue: boolean): void {
    this.isBusy = true;
    this.turn = this.take(nowMicros, isDue)
      .catch((error: unknown) => {
        // A store that cannot answer makes nobody leader.
        const { merge } = this;
        if (merge !== undefined) {
          this.kept = { merge, untilMicros: this.leadAt + TERM_MS * 1000 };
        }
        this.follow();
        this.deps.failed(error);
      })
      .finally(() => (this.isBusy = false));
  }

  private async take(nowMicros: number, isDue: boolean): Promise<void> {
    const { board, nodeId } = this.deps;
    if (!isDue) return await this.lead(nowMicros);
    // Without waiting otherwise: what goes along with another call is sent at once.
    if (!this.hasSalt) await this.shareSalt();
    const isAlarmed = this.deps.isAlarmed();
    // The others hear of it that way, and write more often.
    if (isAlarmed && this.isLeading) await this.watch(nowMicros);
    this.wroteAt = nowMicros;
    const keptMs = this.alongAt === nowMicros ? LEAST_KEPT_MS : this.keptMs;
    const news = await board.write(nodeId, encodeSnapshot(this.deps.snapshot()), keptMs);
    await this.lead(nowMicros, news.isLedByAnother);
    const isFirst = this.firstTurns-- > 0;
    const isWatched = isFirst || isAlarmed || news.isWatched;
    const nodes = this.deps.nodes();
    const quietMs = this.isLeading ? PERIOD_MS : quietPeriodMs(nodes);
    this.periodMs = isWatched ? watchedPeriodMs(nodes) : quietMs;
    if (!this.isLeading) return;
    await this.mergeAll();
    if (isAlarmed || !this.deps.isAlarmed()) return;
    // The next look must not be as late as the last one.
    this.periodMs = watchedPeriodMs(nodes);
    await this.watch(nowMicros);
  }

  private get keptMs(): number {
    return Math.max(LEAST_KEPT_MS, 3 * this.periodMs);
  }

  private async lead(nowMicros: number, isLedByAnother = false): Promise<void> {
    const wasLeading = this.isLeading;
    const { kept } = this;
    this.isLeading = !isLedByAnother && (await this.deps.board.lead(TERM_MS));
    if (this.isLeading) this.leadAt = nowMicros;
    if (!this.isLeading && wasLeading) this.follow();
    if (!this.isLeading || wasLeading) return;
    this.kept = undefined;
    const isSame = kept !== undefined && nowMicros < kept.untilMicros;
    const merge = isSame ? kept.merge : new FleetMerge(this.deps.maxSeries);
    if (!isSame) {
      this.mergedAt = nowMicros;
      this.hasRates = false;
      this.own = undefined;
      await this.history.restore(merge);
      await this.marks.restore();
    }
    await this.deps.leads?.(this.deps.clock.epochMs(nowMicros) * 1000);
    this.merge = merge;
  }

  private follow(): void {
    if (this.isLeading || this.merge !== undefined) this.deps.follows?.();
    this.isLeading = false;
    this.merge = undefined;
  }

  /** Figures are to come more often, for a while. */
  private async watch(nowMicros: number): Promise<void> {
    if (nowMicros - this.watchedAt <= WATCH_AGAIN_MICROS) return;
    this.watchedAt = nowMicros;
    await this.deps.board.set('watch', '1', WATCH_KEPT_MS);
  }

  private async shareSalt(): Promise<void> {
    const { board } = this.deps;
    const known = await board.peek('salt');
    if (known === undefined) {
      await board.set('salt', randomBytes(SALT_BYTES).toString('hex'), SALT_KEPT_MS);
      // Another node may have done the same just now; the next turn reads what holds.
      return;
    }
    this.deps.useSalt(Buffer.from(known, 'hex'));
    this.hasSalt = true;
  }

  private async mergeAll(): Promise<void> {
    const { board, clock } = this.deps;
    const merge = this.merge!;
    const nodes = await board.nodes();
    merge.begin(quietPeriodMs(Math.max(nodes.length, this.deps.nodes())));
    for (let first = 0; first < nodes.length; first += PER_READ) {
      const entries = await board.read(nodes.slice(first, first + PER_READ));
      const now = clock.now();
      let [began, parsed] = [now, 0];
      for (const { node, text } of entries) {
        if (parsed++ >= PER_TURN || clock.now() - began > TURN_MICROS) {
          await nextTurn(clock);
          [began, parsed] = [clock.now(), 1];
        }
        const snapshot = text === undefined ? undefined : decodeSnapshot(node, text);
        if (snapshot === undefined) {
          if (merge.missed(node, now)) await board.remove(node);
        } else if (snapshot === 'damaged') merge.damaged++;
        else if (snapshot === 'other version') merge.otherVersions++;
        else merge.add(snapshot, now);
      }
      await nextTurn(clock);
    }
    merge.keepOnly(new Set(nodes));
    const now = clock.now();
    // Until then what the leader before has merged stands: without rates all figures would be 0 for a moment.
    this.hasRates ||= !board.isShared || merge.hasRates(now);
    if (!this.hasRates) {
      this.turnOf = -1;
      return;
    }
    const epochMicros = clock.epochMs(now) * 1000;
    // In the second before this one, which is over.
    merge.end(epochMicros - SECOND_MICROS, (now - this.mergedAt) / 1000);
    this.mergedAt = now;
    this.own = await this.stateOfFleet(merge, epochMicros);
    await board.set('merged', encodeMerged(this.own), this.keptMs);
    await this.history.keep(merge, epochMicros - SECOND_MICROS);
  }

  private async stateOfFleet(merge: FleetMerge, epochMicros: number): Promise<FleetState> {
    const { nodeId, board } = this.deps;
    // A silent one decides nothing, and must not be left out for that.
    const nodes = merge
      .nodes()
      .sort((a, b) => Number(b.isSilent) - Number(a.isSilent) || b.rate - a.rate);
    const condition = merge.condition();
    const series = merge.table.all().map((one) => stateOf(one, epochMicros));
    const { resources, line, config } = condition;
    const atMs = Math.round(epochMicros / 1000);
    const context = await this.deps.about({ merge, condition, series, epochMicros });
    return {
      ...context,
      ...{ resources, line, config, series, atMs },
      marks: await this.marks.keep({ own: context.marks, resources, nodes, atMs }),
      leader: nodeId,
      isShared: board.isShared,
      nodes: nodes.slice(0, MOST_NODES_SHOWN),
      nodeCount: nodes.length,
      deniedKeys: merge.deniedKeys(),
      hotValues: merge.hotValues(),
      learning: learningOf(merge.table.total, epochMicros),
      damaged: merge.damaged,
      otherVersions: merge.otherVersions,
    };
  }
}

const nextTurn = (clock: Clock): Promise<void> => new Promise((resolve) => clock.soon(resolve));

function watchedPeriodMs(nodes: number): number {
  return Math.min(PERIOD_MS, Math.max(1, Math.ceil(nodes / WRITES_PER_SECOND)) * 1000);
}

function quietPeriodMs(nodes: number): number {
  const period = Math.ceil(nodes / QUIET_WRITES_PER_SECOND) * 1000;
  return Math.min(LONGEST_PERIOD_MS, Math.max(PERIOD_MS, period));
}
