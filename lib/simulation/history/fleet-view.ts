/** What is known from outside of one process. */
export interface ProcessView {
  readonly name: string;
  isAlive: boolean;
  /** With how many others it shares limits while the store is away, as it was told last. */
  nodes: number;
  /** Its policies do without the store; its quotas do. */
  isOpen: boolean;
  isOffline: boolean;
}

/** The processes of a history, as an observer sees them. */
export class FleetView {
  private readonly all: ProcessView[] = [];

  join(name: string): ProcessView {
    const process = { name, isAlive: true, nodes: 1, isOpen: false, isOffline: false };
    this.all.push(process);
    return process;
  }

  get alive(): readonly ProcessView[] {
    return this.all.filter(({ isAlive }) => isAlive);
  }

  /** A process was told with how many it shares. */
  heard(name: string, nodes: number): void {
    const process = this.all.find((one) => one.name === name);
    if (process !== undefined) process.nodes = nodes;
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
