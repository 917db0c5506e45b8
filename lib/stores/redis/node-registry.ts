import type { Cluster, Redis } from 'ioredis';
import { type Cancel, type Clock } from '../../common/clock.js';
import { type NodesHeard } from '../quota-store.js';
import { type Scripts } from './scripts.js';

const BEAT_MICROS = 1_000_000;
/** A node that made no call for so long no longer counts. */
const NODE_TTL_MS = 10_000;

/**
 * How many nodes share the store. A node is seen when it calls: at most once a second a call takes
 * a heartbeat along. The latest count holds while the store is away. A store that has lost its state
 * begins to count anew: its first counts make them no fewer.
 */
export class NodeRegistry {
  private lastBeat = -Infinity;
  count = 1;
  /** Whether the store has said how many there are. */
  isKnown = false;

  constructor(
    private readonly scripts: Scripts,
    private readonly key: string,
    private readonly nodeId: string,
    private readonly clock: Clock,
  ) {}

  beatIfDue(): void {
    const now = this.clock.now();
    if (now - this.lastBeat < BEAT_MICROS) return;
    this.lastBeat = now;
    void this.beat().catch(() => {
      // The store's own calls find that out; the count stays as it was.
    });
  }

  private async beat(): Promise<void> {
    const { nodeId, key } = this;
    const { counts, wasKnown } = await this.scripts.heartbeat([key], nodeId, NODE_TTL_MS, 1, false);
    const least = wasKnown ? 1 : this.count;
    this.count = Math.max(least, counts[0] ?? 0);
    this.isKnown = true;
  }
}

/** Also without traffic: a process may have some during an outage, when it is too late for a beat. */
const BEAT_MS = 1000;

/**
 * The processes that may serve an app of the cluster: a set of those that serve all apps, and one for
 * each app of those that name it. They are counted for as long as they live, whether they have
 * traffic or not, because any of them may need its share while the store is away.
 */
export class AppRegistry {
  private served: Set<string> | undefined;
  private member = '';
  private heard: NodesHeard = () => {};
  private stopBeats: Cancel | undefined;
  private beating: Promise<void> | undefined;
  private readonly beatAtOnce = (): void => this.beat();

  constructor(
    private readonly client: Redis | Cluster,
    private readonly scripts: Pick<Scripts, 'heartbeat'>,
    /** The set of those that serve all apps; the name of an app is added for its own. */
    private readonly key: string,
    private readonly apps: () => readonly string[],
    private readonly clock: Pick<Clock, 'every'>,
  ) {}

  /** Begins to count this process, among those of some apps or of all. */
  join(member: string, apps: readonly string[] | undefined, heard: NodesHeard) {
    this.member = member;
    this.served = apps && new Set(apps);
    this.heard = heard;
    this.stopBeats = this.clock.every(BEAT_MS, this.beatAtOnce);
    this.client.on('ready', this.beatAtOnce);
    this.beat();
  }

  /** The process has a request for an app, whether it has named the app or not. */
  serve(app: string): void {
    if (this.served === undefined || this.served.has(app)) return;
    this.served.add(app);
    this.beat();
  }

  /** The last beat: the sets no longer count the process. */
  async leave(): Promise<void> {
    this.stopBeats?.();
    this.client.off('ready', this.beatAtOnce);
    if (this.client.status !== 'ready' || this.member === '') return;
    await this.beating;
    const own = this.ownSets();
    await this.scripts.heartbeat(own, this.member, NODE_TTL_MS, own.length, true);
  }

  /** The processes that may serve each app, for whoever is none of them. */
  async look(): Promise<Readonly<Record<string, number>>> {
    const apps = this.apps();
    const sets = [this.key, ...apps.map((app) => this.setOf(app))];
    const { counts } = await this.scripts.heartbeat(sets, this.member, NODE_TTL_MS, 0, false);
    if (counts.length !== sets.length) throw new Error('an answer to another question');
    return Object.fromEntries(apps.map((app, i) => [app, counts[0]! + counts[i + 1]!]));
  }

  private beat(): void {
    if (this.beating !== undefined || this.client.status !== 'ready') return;
    this.beating = this.count()
      .catch(() => {
        // The calls of the quota find that out; the numbers stay as they were.
      })
      .finally(() => (this.beating = undefined));
  }

  private async count(): Promise<void> {
    const { served } = this;
    const own = this.ownSets();
    const isOwn = new Set(own);
    const others = [this.key, ...this.apps().map((app) => this.setOf(app))];
    const sets = [...own, ...others.filter((set) => !isOwn.has(set))];
    const beat = this.scripts.heartbeat(sets, this.member, NODE_TTL_MS, own.length, false);
    const { counts, wasKnown } = await beat;
    if (counts.length !== sets.length) throw new Error('an answer to another question');
    const countOf = new Map(sets.map((set, i) => [set, counts[i]!]));
    const ofAll = countOf.get(this.key)!;
    this.heard((app) => {
      const set = this.setOf(app);
      const isCounted = served === undefined || isOwn.has(set);
      return ofAll + (countOf.get(set) ?? 0) + (isCounted ? 0 : 1);
    }, wasKnown);
  }

  private ownSets(): string[] {
    return this.served === undefined
      ? [this.key]
      : Array.from(this.served, (app) => this.setOf(app));
  }

  private setOf(app: string): string {
    return `${this.key}:${app}`;
  }
}
