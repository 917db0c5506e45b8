/** One process, as it is known from outside. */
export interface ProcessView {
  readonly name: string;
  isAlive: boolean;
  /** Among how many policies are shared while the store is away: the less of what it was told in
   * the last two replies, because the last may not have arrived. */
  nodes: number;
  /** The same of quotas. */
  quotaNodes: number;
}

/** The processes of a history, as an observer sees them. */
export class FleetView {
  private readonly all: ProcessView[] = [];
  private readonly latest = new Map<ProcessView, { policies: number; quotas: number }>();

  /** `planned`: among how many quotas are shared before the store was heard. */
  join(name: string, planned: number): ProcessView {
    const shares = { nodes: 1, quotaNodes: planned };
    const process = { name, isAlive: true, ...shares };
    this.latest.set(process, { policies: 1, quotas: planned });
    this.all.push(process);
    return process;
  }

  get alive(): readonly ProcessView[] {
    return this.all.filter(({ isAlive }) => isAlive);
  }

  /** A process was told how many there are. */
  told(name: string, nodes: number, of: 'policies' | 'quotas'): void {
    const process = this.all.find((one) => one.name === name);
    if (process === undefined) return;
    const latest = this.latest.get(process)!;
    const least = Math.min(latest[of], nodes);
    latest[of] = nodes;
    if (of === 'policies') process.nodes = least;
    else process.quotaNodes = least;
  }

  /** The parts of a quota that all processes may use together: more than 1 if some know too few. */
  get quotaParts(): number {
    return this.alive.reduce((sum, { quotaNodes }) => sum + 1 / quotaNodes, 0);
  }

  /** The parts of a limit that processes without the store may use together. */
  parts(which: (process: ProcessView) => boolean): number {
    return this.alive.filter(which).reduce((sum, { nodes }) => sum + 1 / nodes, 0);
  }
}

/** A bound that does not hold. */
export interface Broken {
  readonly check: string;
  readonly atMs: number;
  readonly detail: string;
}
