import { Outcome } from '../../lib/algorithms/algorithm.js';
import {
  leaseTokens,
  settleLeased,
  startLeased,
  takeLeased,
  type LeasedState,
  type LeaseGrant,
} from '../../lib/algorithms/leased-bucket.js';
import { type Limit } from '../../lib/algorithms/limit.js';
import { StoreUnavailableError } from '../../lib/common/errors.js';
import { type LeaseCall, type RemoteStore, type StoreCall } from '../../lib/stores/remote-store.js';

interface Underway {
  readonly call: LeaseCall;
  /** Set once the store has settled the call. */
  grant?: LeaseGrant;
}

/**
 * The store as leases see it: the buckets of one limit at the far end of a network on which each
 * call, and each reply, arrives when the test says so, or never.
 */
export class LeasedStore implements Pick<RemoteStore, 'submit' | 'nodes'> {
  nodes = 1;
  readonly calls: LeaseCall[] = [];
  readonly underway: Underway[] = [];
  private readonly states = new Map<string, LeasedState>();

  constructor(
    readonly limit: Limit,
    private readonly now: () => number,
  ) {}

  submit(call: StoreCall): void {
    if (!('report' in call)) throw new Error('only leases are asked of this store');
    this.calls.push(call);
    this.underway.push({ call });
  }

  /** The tokens that are there to take, and those on lease. */
  look(key = 'k'): { inStore: number; outstanding: number } {
    const { level, current, previous } = settleLeased(this.limit, this.stateOf(key), this.now());
    return { inStore: Math.floor(level / this.limit.perToken), outstanding: current + previous };
  }

  take(key: string, cost: number): boolean {
    const outcome = new Outcome();
    outcome.nowMicros = this.now();
    this.states.set(key, takeLeased(this.limit, this.stateOf(key), cost, outcome));
    return outcome.allowed;
  }

  /** The call reaches the store; its reply is on the way then. */
  arrive(index = 0): void {
    const found = this.underway[index];
    if (found === undefined || found.grant !== undefined) return;
    const { key, report, want } = found.call;
    const after = leaseTokens(this.limit, this.stateOf(key), this.now(), report, want);
    this.states.set(key, after.state);
    found.grant = after.grant;
  }

  /** Both ways at once. */
  answer(index = 0): void {
    this.arrive(index);
    const [found] = this.underway.splice(index, 1);
    found?.call.settled(found.grant!);
  }

  answerAll(): void {
    while (this.underway.length > 0) this.answer();
  }

  /** The deadline has passed. What was on the way never comes, unless it is `late`. */
  lose(index = 0, { late = false } = {}): void {
    const [found] = this.underway.splice(index, 1);
    found?.call.failed(new StoreUnavailableError('lost'));
    if (late && found?.grant !== undefined) found.call.settledLate(found.grant);
  }

  /** All state is gone, as after a flush. */
  flush(): void {
    this.states.clear();
  }

  private stateOf(key: string): LeasedState {
    return this.states.get(key) ?? startLeased(this.limit, this.now());
  }
}
