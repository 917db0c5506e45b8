import { type Clock } from '../common/clock.js';
import { type SplitRequest } from './policy-registry.js';
import { type Decision } from './decision.js';
import { type AcquireOptions, type QuotaRequest } from './rate-limiter.js';
import { type BoundCheck } from './bound-limit.js';
import { WaitingLine, type LineTask } from './waiting-line.js';

/** Of `acquire` calls for one quota. */
const MOST_WAITERS = 1000;

/** All callers that wait: one line for each bucket that is the first of a request. */
export class WaitingLines {
  private readonly lines = new Map<string, WaitingLine>();
  private readonly linesOf = new Map<string, Set<WaitingLine>>();

  constructor(
    private readonly clock: Clock,
    /** Whether quotas are shared with other processes. */
    private readonly hasRemote: boolean,
  ) {}

  join(
    { checks, quotas }: SplitRequest,
    turn: Pick<LineTask, 'tryTake' | 'giveBack'>,
    options: AcquireOptions,
  ): Promise<Decision> {
    const buckets = [...checks.map(bucketName), ...quotas.map(quotaName)];
    const limit = checks[0]?.limit;
    const task: LineTask = {
      policy: limit?.policy ?? quotas[0]!.app,
      maxWaiters: limit?.maxWaiters ?? MOST_WAITERS,
      buckets,
      isShared:
        checks.some(({ limit }) => limit.table === undefined) ||
        (this.hasRemote && quotas.length > 0),
      ...turn,
    };
    return this.lineFor(task).join(task, options);
  }

  wake(checks: readonly BoundCheck[]): void {
    if (this.lines.size === 0) return;
    this.wakeNames(checks.map(bucketName));
  }

  wakeQuotas(quotas: readonly QuotaRequest[]): void {
    if (this.lines.size === 0) return;
    this.wakeNames(quotas.map(quotaName));
  }

  /** Callers under a limit that has changed may have waited long enough, or in vain. */
  wakeLimits(ids: ReadonlySet<string>): void {
    if (this.lines.size === 0 || ids.size === 0) return;
    this.wakeNames([...this.linesOf.keys()].filter((name) => ids.has(limitOfBucket(name))));
  }

  /** How many wait, by the policy or app that they wait for first. */
  waiting(): Record<string, number> {
    const all: Record<string, number> = {};
    for (const { policy, length } of this.lines.values()) all[policy] = (all[policy] ?? 0) + length;
    return all;
  }

  close(): void {
    for (const line of [...this.lines.values()]) line.close();
  }

  private wakeNames(buckets: readonly string[]): void {
    for (const bucket of buckets) {
      for (const line of [...(this.linesOf.get(bucket) ?? [])]) line.wake(bucket);
    }
  }

  /** The line of the first bucket, noted under all of them so that any can wake it. */
  private lineFor({ buckets, policy }: LineTask): WaitingLine {
    const name = buckets[0]!;
    let line = this.lines.get(name);
    if (line === undefined) {
      const made = new WaitingLine(this.clock, () => this.endLine(name, made), policy);
      line = made;
      this.lines.set(name, line);
    }
    for (const bucket of buckets) {
      const lines = this.linesOf.get(bucket);
      if (lines === undefined) this.linesOf.set(bucket, new Set([line]));
      else lines.add(line);
      line.noted.add(bucket);
    }
    return line;
  }

  private endLine(name: string, line: WaitingLine): void {
    if (this.lines.get(name) === line) this.lines.delete(name);
    for (const bucket of line.noted) {
      const lines = this.linesOf.get(bucket);
      lines?.delete(line);
      if (lines?.size === 0) this.linesOf.delete(bucket);
    }
  }
}

function quotaName({ app }: QuotaRequest): string {
  return `quota:${app}`;
}

function bucketName({ limit, key }: BoundCheck): string {
  return `${limit.id}:${key}`;
}

/** The part of `bucketName` before the key: policy, tier and algorithm, none of which has a colon. */
function limitOfBucket(name: string): string {
  return name.split(':', 3).join(':');
}
