import { type StoreUnavailableError } from '../../common/errors.js';
import {
  CallKind,
  GiveBack,
  type RemoteAnswer,
  type RemoteCall,
  type RemoteCheck,
  type RemoteStore,
} from '../remote-store.js';

/**
 * A call whose keys lie in several shards of a Redis Cluster, as one call per shard. Each shard
 * checks all of its part before it commits; across shards nothing is atomic, so if one part is
 * denied or fails, what the others took is given back.
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

class SplitCall {
  readonly answers: (RemoteAnswer | undefined)[];
  /** The checks of the parts that were granted. */
  readonly taken: RemoteCheck[] = [];
  private failure: StoreUnavailableError | undefined;

  constructor(
    readonly call: RemoteCall,
    private missing: number,
    private readonly store: Pick<RemoteStore, 'submit'>,
  ) {
    this.answers = call.checks.map(() => undefined);
  }

  partSettled(): void {
    if (--this.missing === 0) this.settle();
  }

  partFailed(error: StoreUnavailableError): void {
    this.failure ??= error;
    this.partSettled();
  }

  /** A part took its tokens, but nobody is waiting any more. */
  giveBack(checks: readonly RemoteCheck[]): void {
    if (checks.length > 0) this.store.submit(new GiveBack(checks));
  }

  private settle(): void {
    const { call, answers } = this;
    const whole = answers.filter((answer) => answer !== undefined);
    const granted = whole.length === answers.length && whole.every((answer) => answer.allowed);
    if (call.kind === CallKind.Take && !granted) this.giveBack(this.taken);
    if (this.failure !== undefined) call.failed(this.failure);
    else call.settled(whole);
  }
}

class Part implements RemoteCall {
  readonly kind: RemoteCall['kind'];
  readonly checks: readonly RemoteCheck[];

  constructor(
    private readonly whole: SplitCall,
    private readonly indexes: readonly number[],
  ) {
    this.kind = whole.call.kind;
    this.checks = indexes.map((index) => whole.call.checks[index]!);
  }

  settled(answers: readonly RemoteAnswer[]): void {
    answers.forEach((answer, i) => {
      this.whole.answers[this.indexes[i]!] = answer;
    });
    if (answers.every((answer) => answer.allowed)) this.whole.taken.push(...this.checks);
    this.whole.partSettled();
  }

  failed(error: StoreUnavailableError): void {
    this.whole.partFailed(error);
  }

  settledLate(answers: readonly RemoteAnswer[]): void {
    const taken = this.kind === CallKind.Take && answers.every((answer) => answer.allowed);
    if (taken) this.whole.giveBack(this.checks);
  }
}
