import { type StoreUnavailableError } from '../../common/errors.js';
import {
  CallKind,
  GiveBackLate,
  type RemoteAnswer,
  type RemoteCall,
  type RemoteCheck,
  type RemoteStore,
} from '../remote-store.js';

/**
 * A call whose keys lie in several shards of a Redis Cluster, as one call per shard. Each shard
 * checks all of its part before it commits; across shards nothing is atomic, so if one part is
 * denied, what the others took is given back. If one part fails, so does the whole, and the others
 * count as answers that came late.
 */
export function splitCall(
  call: RemoteCall,
  shardOf: (key: string) => number,
  store: Pick<RemoteStore, 'submit'>,
): [shard: number, part: RemoteCall][] {
  const byShard = new Map<number, number[]>();
  call.checks.forEach(({ key }, index) => {
    const shard = shardOf(key);
    const indexes = byShard.get(shard);
    if (indexes === undefined) byShard.set(shard, [index]);
    else indexes.push(index);
  });
  if (byShard.size === 1) return [...byShard.keys()].map((shard) => [shard, call]);
  const whole = new SplitCall(call, byShard.size, store);
  return [...byShard].map(([shard, indexes]) => [shard, new Part(whole, indexes)]);
}

/** The answer of a shard to its part. */
interface PartAnswer {
  readonly part: Part;
  readonly answers: readonly RemoteAnswer[];
}

class SplitCall {
  private readonly answered: PartAnswer[] = [];
  private readonly unanswered: Part[] = [];
  private failure: StoreUnavailableError | undefined;

  constructor(
    readonly call: RemoteCall,
    private missing: number,
    private readonly store: Pick<RemoteStore, 'submit'>,
  ) {}

  partSettled(part: Part, answers: readonly RemoteAnswer[]): void {
    this.answered.push({ part, answers });
    this.partDone();
  }

  partFailed(error: StoreUnavailableError): void {
    this.failure ??= error;
    this.partDone();
  }

  /** The whole has failed with the part, but perhaps not yet. */
  partSettledLate(part: Part, answers: readonly RemoteAnswer[]): void {
    if (this.missing === 0) this.call.settledLate(answers, part.checks);
    else this.answered.push({ part, answers });
  }

  /** Likewise. */
  partUnanswered(part: Part): void {
    if (this.missing === 0) this.call.unanswered?.(part.checks);
    else this.unanswered.push(part);
  }

  private partDone(): void {
    if (--this.missing > 0) return;
    if (this.failure === undefined) this.settle();
    else this.fail(this.failure);
  }

  private settle(): void {
    const { call, answered } = this;
    const granted = answered.filter(isGranted);
    if (call.kind === CallKind.Take && granted.length < answered.length) {
      for (const { part, answers } of granted) {
        this.store.submit(new GiveBackLate(part.checks, answers[0]!.nowMicros));
      }
    }
    const answers: RemoteAnswer[] = [];
    for (const one of answered) {
      one.part.indexes.forEach((index, i) => (answers[index] = one.answers[i]!));
    }
    call.settled(answers);
  }

  /** Whether the request passes all the same decides what becomes of the parts that were answered. */
  private fail(failure: StoreUnavailableError): void {
    this.call.failed(failure);
    for (const { part, answers } of this.answered) this.call.settledLate(answers, part.checks);
    for (const { checks } of this.unanswered) this.call.unanswered?.(checks);
  }
}

function isGranted({ answers }: PartAnswer): boolean {
  return answers.every((answer) => answer.allowed);
}

class Part implements RemoteCall {
  readonly kind: RemoteCall['kind'];
  readonly checks: readonly RemoteCheck[];
  readonly takenAtMicros: number | undefined;

  constructor(
    private readonly whole: SplitCall,
    readonly indexes: readonly number[],
  ) {
    this.kind = whole.call.kind;
    this.takenAtMicros = whole.call.takenAtMicros;
    this.checks = indexes.map((index) => whole.call.checks[index]!);
  }

  settled(answers: readonly RemoteAnswer[]): void {
    this.whole.partSettled(this, answers);
  }

  failed(error: StoreUnavailableError): void {
    this.whole.partFailed(error);
  }

  settledLate(answers: readonly RemoteAnswer[]): void {
    this.whole.partSettledLate(this, answers);
  }

  unanswered(): void {
    this.whole.partUnanswered(this);
  }
}
