import { type LimiterNode } from './contender.js';
import { Host } from './host.js';
import { type Observations } from './observations.js';
import { type World } from './world.js';

interface Member {
  readonly host: Host;
  readonly node: LimiterNode;
}

/** Slots behind a load balancer; each holds one process, or none. */
export class SimulatedFleet {
  private readonly slots: (Member | undefined)[] = [];
  private incarnations = 0;

  constructor(
    private readonly world: World,
    private readonly makeNode: (host: Host) => LimiterNode,
    private readonly observations: Observations,
    private readonly cost: number,
  ) {}

  /** A new process in this slot; one that was there is gone without a word. */
  join(slot: number): void {
    this.crash(slot);
    const host = new Host(`n${slot}`, String(++this.incarnations), this.world);
    this.slots[slot] = { host, node: this.makeNode(host) };
  }

  crash(slot: number): void {
    const member = this.slots[slot];
    if (member !== undefined) member.host.isAlive = false;
    this.slots[slot] = undefined;
  }

  /** Takes the slot out of the balancer, and ends its process once it has said goodbye. */
  leave(slot: number): void {
    const member = this.slots[slot];
    if (member === undefined) return;
    this.slots[slot] = undefined;
    void member.node.leave().then(() => (member.host.isAlive = false));
  }

  /** A request for this slot, or for the next one that has a process. */
  request(slot: number, app: number): void {
    const member = this.memberAt(slot);
    if (member === undefined) return;
    const { observations, cost } = this;
    const { time } = this.world;
    observations.offered(time.seconds(), app);
    const answer = member.node.request(app, cost);
    if (typeof answer === 'boolean') return observations.decided(time.seconds(), app, answer);
    observations.waits();
    void answer.then((allowed) => observations.decided(time.seconds(), app, allowed));
  }

  private memberAt(slot: number): Member | undefined {
    const { slots } = this;
    for (let i = 0; i < slots.length; i++) {
      const member = slots[(slot + i) % slots.length];
      if (member !== undefined) return member;
    }
    return undefined;
  }
}
