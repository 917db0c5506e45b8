import { type BinaryArgument } from '../../../stores/redis/scripts.js';
import { type Clock } from '../../../common/clock.js';
import { START_MICROS } from '../engine/virtual-time.js';
import { BucketCalls } from './bucket-calls.js';
import { fleetScript } from './fleet-scripts.js';
import { LeaseScripts, ReplyError } from './lease-scripts.js';
import { PlainKeys } from './plain-keys.js';

export type Reply = unknown;

/** A call as it came over a connection, and what to do with the reply. */
export interface RedisCall {
  /** The process that sent it. */
  readonly from: string;
  readonly command: string;
  readonly args: readonly BinaryArgument[];
  answer(reply: Reply): void;
  /** Sends a message of a channel to the caller, which has subscribed to it; false if its connection is closed. */
  push(channel: string, text: string): boolean;
}

/** Told of every token that a process was given or brought back, by key of a bucket or by app. */
export interface TokenWatch {
  bucket(process: string, key: string, tokens: number, isRefund: boolean): void;
  quota(process: string, app: string, tokens: number): void;
  /** A process has made a call for its quotas that it had not made before. */
  called(process: string): void;
  /** The number of nodes that a process was told to share with. */
  nodes(process: string, nodes: number, of: 'policies' | 'quotas'): void;
}

/** All that the server keeps. */
interface Data {
  readonly buckets: BucketCalls;
  /** By cluster. */
  readonly leases: Map<string, LeaseScripts>;
  /** The last call of each node: tokens that it gives back count once, also after a loss. */
  readonly heardSeq: Map<string, number>;
  /** When nodes were last seen, in microseconds, by set. */
  readonly nodes: Map<string, Map<string, number>>;
  readonly keys: PlainKeys;
}

const copyOf = ({ buckets, leases, heardSeq, nodes, keys }: Data): Data => ({
  buckets: buckets.copy(),
  leases: new Map([...leases].map(([cluster, scripts]) => [cluster, scripts.copy()])),
  heardSeq,
  nodes: new Map([...nodes].map(([set, seen]) => [set, new Map(seen)])),
  keys: keys.copy(),
});

/** The last part of the name of a ledger, whose fields are packed. */
const LEDGER = ':ledger';
/** Those of a lease before the fields of what was consumed. */
const LEASE_ARGUMENTS = 7;

/** The set of nodes that share policies; quotas have sets of their own. */
const POLICY_NODES = '{nodes}';

/** The wall clock of the server when a simulated run begins. */
const EPOCH_MICROS = 1_700_000_000_000_000;
const simulatedEpoch = (nowMicros: number): number => EPOCH_MICROS + nowMicros - START_MICROS;

/**
 * A Redis server as lib/stores/redis sees it: it takes the very arguments that a client would send,
 * and answers by the algorithms that the scripts in `lua/` are held to.
 */
export class VirtualRedis {
  private data = this.emptyData();
  /** The data of a replica that lags behind. */
  private replica: Data | undefined;
  private offsetMicros = 0;
  private run = 1;
  private held: RedisCall[] | undefined;
  private readonly listeners = new Map<string, Set<RedisCall>>();

  constructor(
    private readonly time: Pick<Clock, 'now'>,
    private readonly watch: TokenWatch,
    /** Its wall clock, in microseconds. */
    private readonly epochMicros: (nowMicros: number) => number = simulatedEpoch,
  ) {}

  receive(call: RedisCall): void {
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
    this.data = this.emptyData(this.data);
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
    return Math.floor(this.epochMicros(this.time.now()) + this.offsetMicros);
  }

  /** A script that fails, because of what it was sent or by intent, answers with an error. */
  private serve(call: RedisCall): Reply {
    try {
      return this.execute(call);
    } catch (error) {
      return error instanceof ReplyError ? error : new ReplyError(`ERR ${String(error)}`);
    }
  }

  private execute(call: RedisCall): Reply {
    const { from, command, args } = call;
    const { buckets, keys } = this.data;
    const now = this.now();
    switch (command) {
      case 'weirBuckets':
        return buckets.settle(args, now, keys, (key, tokens, isRefund) => {
          this.watch.bucket(from, key, tokens, isRefund);
        });
      case 'weirLease':
        return this.lease(call, now);
      case 'weirSeedLimits':
        return this.seedLimits(args);
      case 'weirHeartbeat':
        return this.beat(args, now, from);
      case 'weirForgetBucket':
        buckets.forget(String(args[0]));
        keys.set(String(args[1]), String(args[2] || now), Number(args[3]));
        return [1, String(args[4])];
      case 'info':
        return 'redis_version:simulated';
      case 'subscribe':
        return this.subscribe(call);
      case 'hmget':
        return String(args[0]).endsWith(LEDGER)
          ? this.leasesOf(args[0]!).fields(args.slice(1))
          : this.plain(command, args.map(String));
      default:
        return this.plain(command, args.map(String));
    }
  }

  private lease({ from, args }: RedisCall, now: number): Buffer {
    const reply = this.leasesOf(args[0]!).settle(args, now, String(this.run), {
      moved: (app, tokens) => this.watch.quota(from, app, tokens),
      called: () => this.watch.called(from),
    });
    const consumed = this.data.keys.hash(String(args[3]));
    for (let at = LEASE_ARGUMENTS; at < args.length; at += 2) {
      const field = String(args[at]);
      consumed.set(field, String(Number(consumed.get(field) ?? 0) + Number(args[at + 1])));
    }
    return reply;
  }

  private seedLimits(args: readonly BinaryArgument[]): Reply {
    const reply = this.leasesOf(args[0]!).seed(args);
    const [key, revision, , names, figures] = args.map(String) as [string, ...string[]];
    if (reply[0] === 1) {
      const record = this.data.keys.hash(key);
      record.set('revision', revision!).set('names', names!).set('figures', figures!);
    }
    return reply;
  }

  /** All keys of a cluster begin with its name in braces. */
  private leasesOf(key: BinaryArgument): LeaseScripts {
    const { leases, heardSeq } = this.data;
    const cluster = String(key).split('}', 1)[0]!;
    let found = leases.get(cluster);
    if (found === undefined) leases.set(cluster, (found = new LeaseScripts(heardSeq)));
    return found;
  }

  private plain(command: string, args: readonly string[]): Reply {
    const { keys } = this.data;
    const script = fleetScript(command);
    if (script !== undefined) {
      const nowMs = Math.floor(this.now() / 1000);
      const publish = (channel: string, text: string): void => this.publish(channel, text);
      return [...script({ keys, nowMs, args, publish }), args.at(-1)];
    }
    const run = keys.command(command);
    if (run === undefined) throw new ReplyError(`ERR unknown command '${command}'`);
    return run(args);
  }

  private subscribe(call: RedisCall): number {
    const channel = String(call.args[0]);
    const listeners = this.listeners.get(channel) ?? new Set();
    this.listeners.set(channel, listeners.add(call));
    return 1;
  }

  private publish(channel: string, text: string): void {
    const listeners = this.listeners.get(channel) ?? new Set();
    for (const listener of listeners) {
      if (!listener.push(channel, text)) listeners.delete(listener);
    }
  }

  private emptyData(before?: Data): Data {
    const heardSeq = before?.heardSeq ?? new Map<string, number>();
    const keys = new PlainKeys(() => Math.floor(this.now() / 1000));
    return { buckets: new BucketCalls(), leases: new Map(), heardSeq, nodes: new Map(), keys };
  }

  /** Nodes seen, by set, as heartbeat.lua keeps them. */
  private beat(args: readonly BinaryArgument[], now: number, from: string): unknown[] {
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
