import { type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { QuotaLedger } from '../../lib/algorithms/quota/quota-ledger.js';
import {
  compileQuota,
  numbered,
  type ClusterFigures,
  type QuotaFigures,
} from '../../lib/algorithms/quota/quota-limits.js';
import {
  type AppCall,
  type Need,
  type QuotaCall,
  type QuotaReply,
} from '../../lib/algorithms/quota/quota-protocol.js';
import { type LedgerAppState, type LedgerState } from '../../lib/algorithms/quota/quota-state.js';
import { SystemClock } from '../../lib/common/clock.js';
import { StrayReplyError } from '../../lib/common/errors.js';
import { RedisKeys } from '../../lib/stores/redis/keys.js';
import { AppNumbers } from '../../lib/stores/redis/limits-record.js';
import { viewFields, viewOf } from '../../lib/stores/redis/quota-view.js';
import { RedisQuota } from '../../lib/stores/redis/redis-quota.js';

/** The call of a node about one app; parts of 1,000 are of the tokens it holds, and may go beyond them. */
export interface AppStep {
  readonly app: number;
  readonly usedPermille: number;
  readonly returnedPermille: number;
  readonly refunded: number;
  /** Granted too late, and how long before the last call. */
  readonly late: number;
  readonly lateByMicros: number;
  readonly owed: number;
  readonly demand: number;
  readonly needs: readonly Need[];
  readonly want: number;
}

export type QuotaStepKind =
  | 'call'
  /** The same call again: the last one, or one before. */
  | 'again'
  /** The node's process is replaced by one that knows nothing. */
  | 'restart'
  /** The node comes with a number that leaves some out. */
  | 'skip'
  | 'leave'
  /** The node has heard of more than the store knows, as after a failover. */
  | 'ahead'
  /** The node has heard of less than the store knows. */
  | 'behind'
  /** The store loses everything before the call. */
  | 'loss'
  /** Other limits hold from the call on. */
  | 'change';

/** One step of a history: time passes (or steps back), then a node calls. */
export interface QuotaStep {
  readonly gapMicros: number;
  readonly kind: QuotaStepKind;
  readonly node: number;
  readonly by: number;
  readonly apps: readonly AppStep[];
  /** Of a change, which comes before the call. */
  readonly limits: LimitsStep;
}

/** How limits change, beside those that the history began with. */
export interface LimitsStep {
  /** Tenths of what they were. */
  readonly by: number;
  /** Which apps stay, in turn. */
  readonly keeps: readonly boolean[];
  readonly adds: readonly number[];
  readonly leaseTtlMs: number;
  /** The cluster is left out; where there was none, one comes. */
  readonly togglesCluster: boolean;
}

/** The figures of a ledger that do not wait for the next call about their app, in units. */
export type Books = Pick<LedgerState, 'cluster'> & {
  readonly apps: readonly Omit<LedgerAppState, 'credit' | 'creditSince' | 'room'>[];
};

export interface Answers {
  readonly call: QuotaCall;
  readonly memory: QuotaReply;
  readonly lua: Promise<QuotaReply>;
}

interface NodeMemory {
  incarnation: number;
  seq: number;
  seenEpoch: number;
  seenSequence: number;
  holds: number[];
  calls: QuotaCall[];
}

/** An epoch instant, because that is what Redis counts from. */
const START_MICROS = 1_700_000_000_000_000;
const PREFIX = 'differential';
const CALLS_REMEMBERED = 3;
const TICK_MICROS = 100_000;
/**
 * The ledger and the Lua script beside each other: the same history, the same injected microseconds,
 * one call at a time. What a node knows and holds is what the ledger answered.
 */
export class QuotaPair {
  private static count = 0;
  private now = START_MICROS;
  private readonly ledger: QuotaLedger;
  private readonly quota: RedisQuota;
  /** All apps that there were so far, by their numbers. */
  private names: readonly string[];
  private revision = 0;
  private readonly nodes = new Map<number, NodeMemory>();
  private readonly settled = new WeakMap<QuotaReply, QuotaCall>();
  private readonly clusterId = `pair${QuotaPair.count++}`;

  constructor(
    private readonly figures: QuotaFigures,
    private readonly client: Redis,
  ) {
    this.ledger = new QuotaLedger(compileQuota(figures));
    this.names = figures.apps.map(({ app }) => app);
    this.quota = this.quotaOf(figures);
  }

  /** The script looks for new limits once per tick, so time goes on until it does. */
  async change(change: LimitsStep): Promise<void> {
    const figures = changed(this.figures, change);
    const { lastMicros = this.now, offsetMicros = 0 } = this.ledger.peek()?.cluster ?? {};
    this.now = lastMicros - offsetMicros + TICK_MICROS;
    this.names = numbered(
      this.names,
      figures.apps.map(({ app }) => app),
    );
    this.ledger.change(this.now, compileQuota(figures, this.names, ++this.revision));
    await this.quota.publish(figures, this.revision);
  }

  private quotaOf(figures: QuotaFigures): RedisQuota {
    const { client, clusterId } = this;
    const scriptNow = (): number => this.now;
    const settings = { client, prefix: PREFIX, clusterId, figures, timeoutMs: 60_000 };
    return new RedisQuota({ ...settings, scriptNow }, new SystemClock());
  }

  /** Asks both; the Lua side answers later, so that many steps can be on their way at once. */
  step(step: QuotaStep): Answers {
    if (step.kind !== 'change') this.now += step.gapMicros;
    if (step.kind === 'loss') {
      this.ledger.lose();
      void this.client.flushall();
    }
    const node = this.nodeOf(step);
    const call = this.callOf(step, node);
    const memory = this.ledger.settle(this.now, call);
    const settledFor = this.settled.get(memory) ?? call;
    this.settled.set(memory, settledFor);
    const answer = this.quota.settle(call);
    // A node that repeats a call from before its last gets the last reply, which names another call.
    const lua = settledFor === call ? answer : refused(answer).then(() => memory);
    if (step.kind !== 'again') this.remember(step, node, call, memory);
    return { call, memory, lua };
  }

  /** What both have in their books once all calls are answered: a unit too many may show in no reply for long. */
  async books(): Promise<{ memory: Books; lua: Books }> {
    const { client, clusterId, names } = this;
    const { ledger } = new RedisKeys(PREFIX).quota(clusterId);
    const fields = await client.hmgetBuffer(ledger, ...viewFields(names.length));
    const limits = compileQuota(this.figures, names);
    const { state } = viewOf(limits, fields, {}, new AppNumbers(names));
    return { memory: booksOf(this.ledger.peek()!), lua: booksOf(state) };
  }

  private nodeOf({ node, kind }: QuotaStep): NodeMemory {
    let known = this.nodes.get(node);
    if (known === undefined || kind === 'restart') {
      const incarnation = (known?.incarnation ?? 0) + 1;
      known = { incarnation, seq: 0, seenEpoch: 0, seenSequence: 0, holds: [], calls: [] };
      this.nodes.set(node, known);
    }
    return known;
  }

  private callOf({ kind, node, by, apps }: QuotaStep, known: NodeMemory): QuotaCall {
    const { calls } = known;
    if (kind === 'again' && calls.length > 0) return calls[by % calls.length]!;
    known.seq += kind === 'skip' ? 1 + by : 1;
    const { lastMicros = this.now } = this.ledger.peek()?.cluster ?? {};
    const shift = kind === 'ahead' ? by : kind === 'behind' ? -by : 0;
    return {
      node: `node-${node}`,
      incarnation: String(known.incarnation),
      seq: known.seq,
      seenEpoch: known.seenEpoch + (by % 5 === 0 ? Math.sign(shift) : 0),
      seenSequence: Math.max(0, known.seenSequence + shift),
      leaving: kind === 'leave',
      apps: onePerApp(apps, this.names.length).map((app) => {
        return appCall(app, known.holds[app.app] ?? 0, lastMicros);
      }),
    };
  }

  private remember(
    { kind }: QuotaStep,
    node: NodeMemory,
    call: QuotaCall,
    { epoch, sequence, apps }: QuotaReply,
  ): void {
    node.seenEpoch = epoch;
    node.seenSequence = sequence;
    node.calls = [call, ...node.calls].slice(0, CALLS_REMEMBERED);
    for (const [position, { app, granted }] of apps.entries()) {
      const { used, returned } = call.apps[position]!;
      node.holds[app] = Math.max(0, (node.holds[app] ?? 0) - used - returned) + granted;
    }
    if (kind === 'leave') node.holds = [];
  }
}

/** Shares outside of an overload are those of the last one, or none. */
function booksOf({ cluster, apps }: Pick<LedgerState, 'cluster' | 'apps'>): Books {
  return {
    cluster,
    apps: apps.map(({ credit: _credit, creditSince: _since, room: _room, ...own }) => {
      return cluster.overloaded ? own : { ...own, share: 0, shareRate: 0 };
    }),
  };
}

async function refused(answer: Promise<QuotaReply>): Promise<void> {
  const error = await answer.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof StrayReplyError)) throw new Error('a reply was taken for another call');
}

/** An app that is added later has a number that no step knew of when it was made. */
function onePerApp(steps: readonly AppStep[], apps: number): AppStep[] {
  return steps.map((step) => ({ ...step, app: step.app % apps }));
}

/** Some apps less, some more, and all of it for a larger or a smaller cluster. */
function changed(figures: QuotaFigures, step: LimitsStep): QuotaFigures {
  const { by, keeps, adds, leaseTtlMs, togglesCluster } = step;
  const kept = figures.apps.filter((_, index) => keeps[index % keeps.length]);
  const like = figures.apps[0]!;
  const added = adds.map((name) => ({ ...like, app: `added-${name}`, priority: name % 4 }));
  const apps = [...kept, ...added];
  const cluster = togglesCluster ? toggled(figures) : figures.cluster;
  return times({ ...figures, cluster, leaseTtlMs, apps: apps.length > 0 ? apps : [like] }, by / 10);
}

function toggled({ cluster, apps }: QuotaFigures): ClusterFigures | undefined {
  if (cluster !== undefined) return undefined;
  const capacity = Math.max(...apps.map(({ burst }) => burst));
  return { capacity, burstRatio: 1.2, reservedRatio: 0.1 };
}

function times(figures: QuotaFigures, factor: number): QuotaFigures {
  const scaled = (figure: number): number => Math.max(1, Math.round(figure * factor));
  const { cluster, apps, maxCost } = figures;
  return {
    ...figures,
    cluster: cluster && { ...cluster, capacity: scaled(cluster.capacity) },
    apps: apps.map((app) => {
      const guaranteed = Math.round(app.guaranteed * factor);
      return { ...app, guaranteed, burst: Math.max(guaranteed, scaled(app.burst)) };
    }),
    maxCost: scaled(maxCost),
  };
}

function appCall(step: AppStep, holds: number, lastMicros: number): AppCall {
  const { app, demand, needs, want, refunded, owed } = step;
  const used = Math.ceil((holds * step.usedPermille) / 1000);
  const returned = Math.ceil((holds * step.returnedPermille) / 1000);
  const late = { tokens: step.late, takenMicros: lastMicros - step.lateByMicros };
  return { app, used, returned, refunded, late, owed, demand, needs, want };
}

/** A client on which calls keep their order. */
export async function connectTo(url: string): Promise<Redis> {
  const client = new Redis(url, { lazyConnect: true, enableOfflineQueue: false });
  await client.connect();
  corkTurns(client);
  return client;
}

/** Commands of one turn of the event loop leave in one write: to write was a quarter of such a test. */
function corkTurns(client: Redis): void {
  const { stream } = client as unknown as { stream: Socket };
  const write: (data: string | Buffer) => boolean = stream.write.bind(stream);
  let isCorked = false;
  stream.write = (data: string | Buffer): boolean => {
    if (!isCorked) {
      isCorked = true;
      stream.cork();
      setImmediate(() => {
        isCorked = false;
        stream.uncork();
      });
    }
    return write(data);
  };
}
