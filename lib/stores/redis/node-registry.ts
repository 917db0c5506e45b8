import { type Clock } from '../../common/clock.js';
import { type Scripts } from './scripts.js';

const BEAT_MICROS = 1_000_000;
/** A node that made no call for so long no longer counts. */
export const NODE_TTL_MS = 10_000;

/**
 * How many nodes share the store. A node is seen when it calls: at most once a second a call takes
 * a heartbeat along. What was heard last holds while the store is away. A store that has lost its state
 * begins to count anew: what it knows of at first makes them no fewer.
 */
export class NodeRegistry {
  private lastBeat = -Infinity;
  count = 1;

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
      // The store's own calls find out and tell; the count stays as it was.
    });
  }

  private async beat(): Promise<void> {
    const { nodeId, key } = this;
    const { counts, wasKnown } = await this.scripts.heartbeat([key], nodeId, NODE_TTL_MS, 1, false);
    const least = wasKnown ? 1 : this.count;
    this.count = Math.max(least, counts[0] ?? 0);
  }
}
