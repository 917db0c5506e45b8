import type { Redis } from 'ioredis';
import { infoField, withRedis } from './redis-client.js';
import { type RedisProcess, startRedis } from './redis-server.js';
import { until } from './until.js';

export interface RedisClusterOptions {
  readonly masters?: number;
  readonly replicasPerMaster?: number;
}

export interface NodeAddress {
  readonly host: string;
  readonly port: number;
}

interface Shard {
  readonly master: RedisProcess;
  readonly replicas: readonly RedisProcess[];
}

const SLOTS = 16_384;
// Meeting and electing takes Redis about two seconds; the rest is for a busy machine, where elections are held again.
const FORM_TIMEOUT_MS = 60_000;

const NODE_CONFIG = {
  'cluster-enabled': 'yes',
  'cluster-config-file': 'nodes.conf',
  'cluster-node-timeout': 1_000,
  // A replica that lagged behind may still take over: the tests are about clients, not about data.
  'cluster-replica-validity-factor': 0,
  'cluster-allow-replica-migration': 'no',
  'repl-diskless-sync-delay': 0,
};

/** A cluster of real nodes. Shards are counted in the order of their slots. */
export class RedisCluster {
  readonly nodes: readonly NodeAddress[];

  constructor(private readonly shards: readonly Shard[]) {
    this.nodes = this.processes.map(({ host, port }) => ({ host, port }));
  }

  get processes(): readonly RedisProcess[] {
    return [...this.shards.map(({ master }) => master), ...this.shards.flatMap((s) => s.replicas)];
  }

  /** Kills the node that shard `i` started with as its master. */
  async killMaster(i: number): Promise<void> {
    await this.shard(i).master.kill();
  }

  /** Resolves when a replica has taken over shard `i` and every living node agrees. */
  async failedOver(i: number): Promise<void> {
    const { master, replicas } = this.shard(i);
    try {
      await until(
        async () => {
          const nodes = await ask(this.living[0], (client) => client.cluster('NODES'));
          const owners = linesOf(nodes).filter((line) => ownsSlots(line));
          return (
            replicas.some(({ port }) => owners.some((line) => line.includes(`:${port}@`))) &&
            !owners.some((line) => line.includes(`:${master.port}@`)) &&
            (await this.isOk())
          );
        },
        { timeoutMs: FORM_TIMEOUT_MS, what: `a replica to take over shard ${i}` },
      );
    } catch (error) {
      throw new Error(`${String(error)}\n${await this.condition()}`, { cause: error });
    }
  }

  async stop(): Promise<void> {
    // A master waits for its replicas before it goes; killed together they go at once.
    await Promise.all(this.processes.map((node) => node.kill()));
    await Promise.all(this.processes.map((node) => node.stop()));
  }

  /** @internal */
  async form(): Promise<void> {
    const masters = this.shards.map(({ master }) => master);
    await Promise.all(
      masters.map(async (master, i) => {
        const first = Math.floor((i * SLOTS) / masters.length);
        const last = Math.floor(((i + 1) * SLOTS) / masters.length) - 1;
        await ask(master, async (client) => {
          // Equal epochs would have to be sorted out by the nodes first, at a second's pace.
          await client.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
          await client.call('CLUSTER', 'ADDSLOTSRANGE', first, last);
        });
      }),
    );
    await ask(this.processes[0], async (client) => {
      for (const { host, port } of this.nodes) await client.call('CLUSTER', 'MEET', host, port);
    });
    await until(() => this.everyNode(knows(this.nodes.length)), {
      timeoutMs: FORM_TIMEOUT_MS,
      what: 'the nodes of a cluster to meet',
    });
    await Promise.all(this.shards.map((shard) => attachReplicas(shard)));
    await until(async () => (await this.isOk()) && (await this.replicasAreLinked()), {
      timeoutMs: FORM_TIMEOUT_MS,
      what: 'a cluster to be ready',
    });
  }

  /** Each node's own view of the cluster and the end of its log: an election that fails is explained by no other. */
  private async condition(): Promise<string> {
    const views = this.processes.map(async (node) => {
      const view = node.alive
        ? await ask(node, (client) => client.cluster('NODES')).catch(String)
        : 'not running';
      return `${node.port}: ${String(view).trim()}\n${linesOf(node.log).slice(-15).join('\n')}`;
    });
    return (await Promise.all(views)).join('\n\n');
  }

  private get living(): readonly RedisProcess[] {
    return this.processes.filter(({ alive }) => alive);
  }

  private isOk(): Promise<boolean> {
    return this.everyNode(async (client) => {
      const info = await client.cluster('INFO');
      return (
        infoField(info, 'cluster_state') === 'ok' &&
        infoField(info, 'cluster_slots_ok') === String(SLOTS)
      );
    });
  }

  private async replicasAreLinked(): Promise<boolean> {
    const replicas = this.shards.flatMap((shard) => shard.replicas);
    const links = await Promise.all(
      replicas.map((replica) => ask(replica, (client) => client.info('replication'))),
    );
    return links.every((info) => infoField(info, 'master_link_status') === 'up');
  }

  private async everyNode(holds: (client: Redis) => Promise<boolean>): Promise<boolean> {
    const answers = await Promise.all(this.living.map((node) => ask(node, holds)));
    return answers.every(Boolean);
  }

  private shard(i: number): Shard {
    const shard = this.shards[i];
    if (!shard) throw new RangeError(`no shard ${i} among ${this.shards.length}`);
    return shard;
  }
}

/** Starts a cluster and waits until every node calls it ok and every replica is linked. */
export async function startRedisCluster({
  masters = 3,
  replicasPerMaster = 1,
}: RedisClusterOptions = {}): Promise<RedisCluster> {
  const startNode = (): Promise<RedisProcess> => startRedis({ config: NODE_CONFIG });
  const shards = await Promise.all(
    Array.from({ length: masters }, async () => ({
      master: await startNode(),
      replicas: await Promise.all(Array.from({ length: replicasPerMaster }, startNode)),
    })),
  );
  const cluster = new RedisCluster(shards);
  await cluster.form();
  return cluster;
}

function ask<T>(node: RedisProcess | undefined, work: (client: Redis) => Promise<T>): Promise<T> {
  if (!node) throw new Error('no node of the cluster is alive');
  return withRedis(node.port, work);
}

async function attachReplicas({ master, replicas }: Shard): Promise<void> {
  const masterId = await ask(master, (client) => client.cluster('MYID'));
  for (const replica of replicas) {
    await ask(replica, (client) => client.cluster('REPLICATE', masterId));
  }
}

const knows =
  (count: number) =>
  async (client: Redis): Promise<boolean> => {
    const lines = linesOf(await client.cluster('NODES'));
    return lines.length === count && lines.every((line) => !/handshake|fail|noaddr/.test(line));
  };

const linesOf = (text: unknown): string[] => String(text).trim().split('\n');

/** CLUSTER NODES: id, address, flags, master, ping, pong, epoch, link, then the slots. */
const ownsSlots = (line: string): boolean => line.split(' ').length > 8;
