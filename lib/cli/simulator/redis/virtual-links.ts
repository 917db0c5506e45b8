import { type BinaryArgument } from '../../../stores/redis/scripts.js';
import { type Machine } from '../engine/machine.js';
import { type Network } from '../engine/network.js';
import { type Timeline } from '../engine/virtual-time.js';
import { type Reply, type VirtualRedis } from './virtual-redis.js';

/** The near end of a connection. */
export interface ConnectionEnd {
  opened(connection: Connection): void;
  refused(connection: Connection): void;
  replied(connection: Connection, reply: Reply): void;
  closed(connection: Connection): void;
  /** Something was told on a channel that this end listens to. */
  told(connection: Connection, channel: string, text: string): void;
}

/** A fault of a single reply. */
export type ReplyFault = 'doubled' | 'skipped' | 'cut' | 'lost';

/** All connections between processes and the server; what is sent over one arrives in order. */
export class VirtualLinks {
  /** The server takes no connections. */
  isDown = false;
  private readonly lateUntil = new Map<string, { readonly until: number; readonly ms: number }>();
  private readonly connections = new Set<Connection>();

  constructor(
    readonly time: Timeline,
    readonly network: Pick<Network, 'delayMicros'>,
    readonly server: VirtualRedis,
  ) {}

  open(machine: Machine, end: ConnectionEnd): Connection {
    const connection = new Connection(this, machine, end);
    this.connections.add(connection);
    connection.arrives(2 * this.network.delayMicros(), () => {
      if (this.isDown) end.refused(connection);
      else end.opened(connection);
    });
    return connection;
  }

  /** Those of one process, or of all. */
  of(process?: string): Connection[] {
    return [...this.connections].filter(({ machine }) => {
      return process === undefined || machine.nodeId === process;
    });
  }

  /** Replies to that process, or to all, take so much longer for a while. */
  delay(ms: number, forMs: number, process = ''): void {
    this.lateUntil.set(process, { until: this.time.now() + forMs * 1000, ms });
  }

  lateMicros(process: string): number {
    const now = this.time.now();
    let most = 0;
    for (const name of ['', process]) {
      const late = this.lateUntil.get(name);
      if (late !== undefined && now < late.until) most = Math.max(most, late.ms * 1000);
    }
    return most;
  }

  /** The server, or what lies between, closes the connections. */
  drop(process?: string): void {
    for (const connection of this.of(process)) connection.drop();
  }

  forget(connection: Connection): void {
    this.connections.delete(connection);
  }
}

/** One connection: two ways, each in order. */
export class Connection {
  /** Half-open: what is sent is lost on the way, in both directions, and nobody is told. */
  isDeaf = false;
  /** The fault of the next reply. */
  nextReply: ReplyFault | undefined;
  /** The command whose reply that is, if not just the next. */
  faultOf: string | undefined;
  /** A reply that comes twice: the second time in front of the next one, where it does most harm. */
  private again: (() => void) | undefined;
  private isOpen = true;
  private lastSent = 0;
  private lastReply = 0;

  constructor(
    private readonly links: VirtualLinks,
    readonly machine: Machine,
    private readonly end: ConnectionEnd,
  ) {}

  send(command: string, args: readonly BinaryArgument[]): void {
    const { time, network, server } = this.links;
    this.lastSent = Math.max(this.lastSent, time.now() + network.delayMicros());
    const from = this.machine.nodeId;
    time.at(this.lastSent, () => {
      if (this.isDeaf || this.links.isDown) return;
      server.receive({
        ...{ from, command, args },
        answer: (reply) => this.answer(command, reply),
        push: (channel, text) => this.push(channel, text),
      });
    });
  }

  /** The near end is gone; what was sent before still arrives. */
  close(): void {
    this.isOpen = false;
    this.links.forget(this);
  }

  drop(): void {
    if (this.isDeaf) return;
    this.isDeaf = true;
    this.arrives(this.links.network.delayMicros(), () => this.end.closed(this));
  }

  /** Something comes to the near end, unless that is closed by then. */
  arrives(delayMicros: number, task: () => void): void {
    const { time } = this.links;
    this.lastReply = Math.max(this.lastReply, time.now() + delayMicros);
    time.at(this.lastReply, () => {
      this.machine.run('arrival', () => {
        if (this.isOpen) task();
      });
    });
  }

  private push(channel: string, text: string): boolean {
    if (!this.isOpen || this.isDeaf) return false;
    this.arrives(this.links.network.delayMicros(), () => this.end.told(this, channel, text));
    return true;
  }

  private answer(command: string, reply: Reply): void {
    if (this.isDeaf) return;
    const isMet = this.faultOf === undefined || this.faultOf === command;
    const fault = isMet ? this.nextReply : undefined;
    if (isMet) this.nextReply = undefined;
    if (fault === 'lost') return this.drop();
    if (fault === 'skipped') return;
    const told = fault === 'cut' ? cut(reply) : reply;
    const delay = this.links.network.delayMicros() + this.links.lateMicros(this.machine.nodeId);
    const replied = (): void => {
      if (!this.isDeaf) this.end.replied(this, told);
    };
    const { again } = this;
    this.again = fault === 'doubled' ? replied : undefined;
    if (again !== undefined) this.arrives(delay, again);
    this.arrives(delay, replied);
  }
}

/** The beginning of a reply whose end never came. */
function cut(reply: Reply): Reply {
  if (Buffer.isBuffer(reply)) return reply.subarray(0, Math.floor(reply.length / 16) * 8);
  if (Array.isArray(reply)) return reply.slice(0, Math.ceil(reply.length / 2));
  return reply;
}
