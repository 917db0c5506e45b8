import type { Cluster, Redis } from 'ioredis';
import { type Clock } from '../../common/clock.js';
import { newIncarnation } from '../../common/ids.js';
import { type ProbeLease } from '../probe-lease.js';
import { withTimeout } from './connection.js';
import { RedisKeys } from './keys.js';
import { defineScripts, type Scripts } from './scripts.js';

export interface RedisProbeLeaseSettings {
  readonly client: Redis | Cluster;
  readonly prefix: string;
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 50;

/** The right to probe, as a key in Redis that carries its owner's mark and ends with its time. */
export class RedisProbeLease implements ProbeLease {
  private readonly names: RedisKeys;
  private readonly scripts: Scripts;
  private readonly mark = newIncarnation();

  constructor(
    private readonly settings: RedisProbeLeaseSettings,
    private readonly clock: Pick<Clock, 'after' | 'soon'>,
  ) {
    this.names = new RedisKeys(settings.prefix);
    this.scripts = defineScripts(settings.client);
  }

  /** While the store is away this node may probe by itself. */
  tryHold(resource: string, ttlMs: number): Promise<boolean> | boolean {
    const { client, timeoutMs = TIMEOUT_MS } = this.settings;
    if (client.status !== 'ready') return true;
    const held = this.scripts.holdLease(this.names.probing(resource), this.mark, ttlMs);
    return withTimeout(held, timeoutMs, this.clock).catch(() => true);
  }

  release(resource: string): void {
    if (this.settings.client.status !== 'ready') return;
    void this.scripts.releaseLease(this.names.probing(resource), this.mark).catch(() => {
      // It ends by itself.
    });
  }
}
