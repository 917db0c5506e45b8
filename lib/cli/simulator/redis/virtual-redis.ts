import { START_MICROS, type VirtualTime } from '../engine/virtual-time.js';
import { BucketCalls } from './bucket-calls.js';
import { LeaseCalls, ReplyError } from './lease-calls.js';

export type Argument = string | number | Buffer;
export type Reply = unknown;

/** A call as it came over a connection, and what to do with the reply. */
export interface ServerCall {
  /** The process that sent it. */
  readonly from: string;
  readonly command: string;
  readonly args: readonly Argument[];
  answer(reply: Reply): void;
}

/** Told of every token that a process was given or brought back, by key of a bucket or by app. */
export interface TokenWatch {
  bucket(process: string, key: string, tokens: number, isRefund: boolean): void;
  quota(process: string, app: string, tokens: number): void;
  /** A process has made a call for its quotas that it had not made before. */
  called(process: string): void;
  /** How many nodes a process was told to share with. */
  nodes(process: string, nodes: number, of: 'policies' | 'quotas'): void;
}

/** All that the server keeps. */
interface Data {
  readonly buckets: BucketCalls;
  readonly leases: LeaseCalls;
  /** When nodes were last seen, in microseconds, by set. */
  readonly nodes: Map<string, Map<string, number>>;
}

const emptyData = (before?: Data): Data => ({
  buckets: new BucketCalls(),
  leases: new LeaseCalls(before?.leases.heardSeq),
  nodes: new Map(),
});

const copyOf = ({ buckets, leases, nodes }: Data): Data => ({
  buckets: buckets.copy(),
  leases: leases.copy(),
  nodes: new Map([...nodes].map(([set, seen]) => [set, new Map(seen)])),
});

/** The set of nodes that share policies; quotas have sets of their own. */
const POLICY_NODES = '{nodes}';

/** The wall clock of the server when the run begins. */
const EPOCH_MICROS = 1_700_000_000_000_000;

/**
 * A Redis server as lib/stores/redis sees it: it takes the very arguments that a client would send,
 * and answers by the algorithms that the scripts in `lua/` are held to.
 */
export class VirtualRedis {
  private data = emptyData();
  /** What a replica has that lags behind. */
  private replica: Data | undefined;
  private offsetMicros = 0;
  private run = 1;
  private held: ServerCall[] | undefined;

  constructor(
    private readonly time: VirtualTime,
    private readonly watch: TokenWatch,
  ) {}

  receive(call: ServerCall): void {
    if (this.held !== undefined) this.held.push(call);
    else call.answer(this.serve(call));
  }

  /** Calls are read but not answered until it goes on, as with CLIENT PAUSE or a stopped process. */
  pause(): void {
    this.held ??= [];
  }

  goOn(): void {
    const held = this.held ?? [];
    this.held = undefined;
    for (const call of held) this.receive(call);
  }

  /** The calls that it has not answered are gone with it. */
  restart(keeps: 'all' | 'nothing' | 'replica'): void {
    this.held = undefined;
    this.run++;
    if (keeps === 'nothing') this.flush();
    if (keeps === 'replica' && this.replica !== undefined) this.data = this.replica;
    this.replica = undefined;
  }

  flush(): void {
    this.data = emptyData(this.data);
  }

  /** From now on the replica hears of nothing more. */
  fallBehind(): void {
    this.replica ??= copyOf(this.data);
  }

  stepClock(ms: number): void {
    this.offsetMicros += ms * 1000;
  }

  /** Its wall clock, in microseconds. */
  now(): number {
    return Math.floor(EPOCH_MICROS + this.time.now() - START_MICROS + this.offsetMicros);
  }

  /** A script that fails, because of what it was sent or by intent, answers with an error. */
  private serve(call: ServerCall): Reply {
    try {
      return this.execute(call);
    } catch (error) {
      return error instanceof ReplyError ? error : new ReplyError(`ERR ${String(error)}`);
    }
  }

  private execute({ from, command, args }: ServerCall): Reply {
    const { buckets, leases } = this.data;
    const now = this.now();
    switch (command) {
      case 'weirBuckets':
        return buckets.settle(args, now, (key, tokens, isRefund) => {
          this.watch.bucket(from, key, tokens, isRefund);
        });
      case 'weirLease':
        return leases.settle(args, now, String(this.run), {
          moved: (app, tokens) => this.watch.quota(from, app, tokens),
          called: () => this.watch.called(from),
        });
      case 'weirSeedLimits':
        return leases.seed(args);
      case 'weirHeartbeat':
        return this.beat(args, now, from);
      case 'weirForgetBucket':
        buckets.forget(String(args[0]));
        return [1, String(args[1])];
      case 'info':
        return 'OK';
      default:
        throw new ReplyError(`ERR unknown command '${command}'`);
    }
  }

  /** Nodes seen, by set, as heartbeat.lua keeps them. */
  private beat(args: readonly Argument[], now: number, from: string): unknown[] {
    const count = Number(args[0]);
    const names = args.slice(1, 1 + count).map(String);
    const [node, ttlMs, own, isLeaving, call] = args.slice(1 + count);
    const oldest = now - Number(ttlMs) * 1000;
    let wasKnown = Number(own) === 0;
    const sets = names.map((name, index) => {
      const nodes = this.data.nodes.get(name) ?? new Map<string, number>();
      if (index >= Number(own)) return nodes;
      this.data.nodes.set(name, nodes);
      for (const [one, seen] of nodes) {
        if (seen < oldest) nodes.delete(one);
        else nodes.set(one, Math.min(seen, now));
      }
      wasKnown ||= nodes.has(String(node));
      if (String(isLeaving) === '1') nodes.delete(String(node));
      else nodes.set(String(node), now);
      return nodes;
    });
    const counts = sets.map((nodes) => [...nodes.values()].filter((seen) => seen >= oldest).length);
    const of = names[0]!.endsWith(POLICY_NODES) ? 'policies' : 'quotas';
    this.watch.nodes(from, counts[0]!, of);
    return [...counts, wasKnown ? 1 : 0, String(call)];
  }
}
