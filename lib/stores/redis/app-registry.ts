import type { Cluster, Redis } from 'ioredis';
import { type Cancel, type Clock } from '../../common/clock.js';
import { type NodesHeard } from '../quota-store.js';
import { NODE_TTL_MS } from './node-registry.js';
import { type Scripts } from './scripts.js';

/** Also without traffic: a process may have some during an outage, and then it is too late to ask. */
const BEAT_MS = 1000;

/**
 * Which processes may serve an app of the cluster: a set of those that serve all apps, and one for
 * each app of those that name it. They are counted for as long as they live, whether they have
 * traffic or not, because any of them may be asked for its share while the store is away.
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

  /** The process is asked for an app, whether it has named it or not. */
  serve(app: string): void {
    if (this.served === undefined || this.served.has(app)) return;
    this.served.add(app);
    this.beat();
  }

  /** The last beat: what the process was counted in counts it no longer. */
  async leave(): Promise<void> {
    this.stopBeats?.();
    this.client.off('ready', this.beatAtOnce);
    if (this.client.status !== 'ready' || this.member === '') return;
    await this.beating;
    const own = this.ownSets();
    await this.scripts.heartbeat(own, this.member, NODE_TTL_MS, own.length, true);
  }

  private beat(): void {
    if (this.beating !== undefined || this.client.status !== 'ready') return;
    this.beating = this.count()
      .catch(() => {
        // The calls find out and tell; the numbers stay as they were heard last.
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
