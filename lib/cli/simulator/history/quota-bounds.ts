import { clusterDepth } from '../../../algorithms/quota/quota-limits.js';
import { checkQuota, type QuotaOptions } from '../../../limiter/quota-options.js';
import { NeededDepth } from '../measure/need.js';
import { type FleetView } from './fleet-view.js';
import { Untold } from './untold.js';

const EDGE_TOKENS = 1e-6;
/** The part of the guarantees that processes share while the store is away; not imported, so that a judge does not follow what it judges. */
const OFFLINE_PART = 0.9;

interface AppCount {
  guaranteed: number;
  ceiling: number;
  readonly fromStore: NeededDepth;
  readonly byShare: NeededDepth;
  /** The most shares that processes took for theirs at one time, as parts of the whole. */
  parts: number;
}

/** A share is charged for tokens of the store when they are reported: with the next probe at the latest. */
const CHARGED_WITHIN_SECONDS = 2.5;

/** The least that a process has of an app while the store is away. */
interface LeastShare {
  level: number;
  last: number;
}

/** The bounds of a quota as they are stated, counted from outside; see PolicyBounds. */
export class QuotaBounds {
  private capacity = 0;
  private depth = 0;
  private readonly apps = new Map<string, AppCount>();
  private readonly fromStore: NeededDepth;
  private readonly inAll: NeededDepth;
  private readonly left = new Map<string, number>();
  private added = 0;
  /** The same, in buckets: of apps, each of which has one of its own. */
  private losses = 0;
  private refunded = 0;
  private started = 0;
  private readonly untold: Untold;
  private readonly calledAt = new Map<string, number>();
  private readonly shares = new Map<string, LeastShare>();
  private hasChanged = false;

  constructor(
    options: QuotaOptions,
    private readonly maxCost: number,
    /** Processes that there are from the start. */
    private readonly initial: number,
    private readonly fleet: FleetView,
  ) {
    this.fromStore = new NeededDepth(0);
    this.inAll = new NeededDepth(0);
    this.untold = new Untold(this.inAll);
    this.set(options, 0);
  }

  processStarted(): void {
    this.started++;
  }

  /** State is lost, or a clock steps; `lagSeconds` of it were not replicated. */
  lose(lagSeconds = 0): void {
    this.losses++;
    this.added += this.depth + this.capacity * lagSeconds;
  }

  change(options: QuotaOptions, second: number): void {
    this.hasChanged = true;
    const before = this.depth;
    this.set(options, second);
    this.losses++;
    this.added += 2 * Math.max(before, this.depth);
  }

  /**
   * A process has made another call, after it had the answer to the one before: so the store has heard
   * of all that had passed when it got that one.
   */
  called(process: string, second: number): void {
    const before = this.calledAt.get(process);
    this.calledAt.set(process, second);
    if (before !== undefined) this.untold.tell(process, before, this.capacity, this.depth, second);
  }

  granted(process: string, app: string, tokens: number): void {
    const name = `${process} ${app}`;
    this.left.set(name, (this.left.get(name) ?? 0) + tokens);
  }

  refund(process: string, app: string, tokens: number): void {
    this.granted(process, app, tokens);
    this.refunded += tokens;
  }

  admitted(
    process: string,
    app: string,
    tokens: number,
    source: string,
    begun: number,
    second: number,
  ): string | undefined {
    const own = this.apps.get(app)!;
    if (source === 'fallback') {
      this.leastShareOf(process, app, second).level -= tokens;
      this.untold.pass(process, tokens, second);
      return this.admittedByShare(own, app, tokens, second);
    }
    this.usedOtherwise(process, app, second);
    this.granted(process, app, -tokens);
    const left = this.left.get(`${process} ${app}`)!;
    if (left < 0) return `quota ${app}: ${-left} more than ${process} was granted`;
    const more = this.refunded + this.added;
    const most = this.depth + more;
    const used = this.fromStore.add(tokens, begun, second);
    if (used > most + EDGE_TOKENS) return exceeds('cluster from the store', used, most);
    const mostOfApp = Math.max(own.ceiling, this.maxCost) * (1 + this.losses) + this.refunded;
    const usedOfApp = own.fromStore.add(tokens, begun, second);
    if (usedOfApp > mostOfApp + EDGE_TOKENS)
      return exceeds(`ceiling of ${app}`, usedOfApp, mostOfApp);
    return this.checkAll(tokens, begun, second);
  }

  /** A share is also charged for tokens that it did not give; an observer knows neither when nor how many. */
  usedOtherwise(process: string, app: string, second: number): void {
    const share = this.leastShareOf(process, app, second);
    share.level = 0;
    share.last = second + CHARGED_WITHIN_SECONDS;
  }

  /** A process reports nothing while it stands still, and what it has yet to report is charged after that. */
  stalled(process: string, second: number, untilSecond: number): void {
    for (const [name, share] of this.shares) {
      if (!name.startsWith(`${process} `) || share.last <= second) continue;
      share.last = Math.max(share.last, untilSecond + CHARGED_WITHIN_SECONDS);
    }
  }

  /** A process without the store denies only what its share does not hold. */
  denied(process: string, app: string, cost: number, second: number): string | undefined {
    const { level } = this.leastShareOf(process, app, second);
    if (this.hasChanged || level < cost + EDGE_TOKENS) return undefined;
    return `quota ${app}: ${process} denies ${cost} of ${level.toFixed(2)} that its share holds`;
  }

  /** The share, as small as it may be: divided by all processes that there have ever been, and empty after other use. */
  private leastShareOf(process: string, app: string, second: number): LeastShare {
    const name = `${process} ${app}`;
    const rate = (OFFLINE_PART * this.apps.get(app)!.guaranteed) / this.started;
    const depth = Math.max(this.maxCost, (rate * this.depth) / this.capacity);
    let share = this.shares.get(name);
    if (share === undefined) this.shares.set(name, (share = { level: depth, last: second }));
    if (second > share.last) {
      share.level = Math.min(depth, share.level + rate * (second - share.last));
      share.last = second;
    }
    return share;
  }

  private admittedByShare(
    own: AppCount,
    app: string,
    tokens: number,
    second: number,
  ): string | undefined {
    const parts = Math.max(1, this.fleet.quotaParts);
    own.parts = Math.max(own.parts, parts);
    own.byShare.change(OFFLINE_PART * own.guaranteed * parts, second);
    const used = own.byShare.add(tokens, second, second);
    const share = (OFFLINE_PART * own.guaranteed * this.depth) / this.capacity;
    const joined = (this.started - this.initial) * Math.max(this.maxCost, share);
    const shares = share * (own.parts + this.losses) + this.started * this.maxCost + joined;
    // Tokens that a caller gives back while the store is away go to the share.
    const most = shares + this.refunded;
    if (used > most + EDGE_TOKENS) return exceeds(`${app} by share`, used, most);
    return this.checkAll(tokens, second, second);
  }

  private checkAll(tokens: number, begun: number, second: number): string | undefined {
    const used = this.inAll.add(tokens, begun, second);
    const fromStore = this.depth + this.added + this.refunded;
    const most = fromStore + this.untold.most(this.capacity, second);
    return used > most + EDGE_TOKENS ? exceeds('cluster in all', used, most) : undefined;
  }

  private set(options: QuotaOptions, second: number): void {
    const { cluster, apps, maxCost, paceMs } = checkQuota(options).figures;
    this.capacity = cluster!.capacity;
    this.depth = clusterDepth(cluster!, maxCost, paceMs);
    for (const need of [this.fromStore, this.inAll]) need.change(this.capacity, second);
    for (const { app, guaranteed, burst } of apps) {
      const own = this.apps.get(app) ?? {
        ...{
          guaranteed,
          ceiling: burst,
          fromStore: new NeededDepth(burst),
          byShare: new NeededDepth(0),
          parts: 1,
        },
      };
      own.guaranteed = guaranteed;
      own.ceiling = burst;
      own.fromStore.change(burst, second);
      own.byShare.change(OFFLINE_PART * guaranteed, second);
      this.apps.set(app, own);
    }
  }
}

function exceeds(what: string, used: number, most: number): string {
  return `quota ${what}: ${used.toFixed(2)} of ${most.toFixed(2)}`;
}
