import { MemoryBoard } from '../../lib/stores/memory/memory-board.js';
import { type BoardStore } from '../../lib/stores/board-store.js';
import { type ManualClock } from '../support/manual-clock.js';

/** A board of several processes: one of them leads until its term is over. */
export class SharedBoard extends MemoryBoard {
  override readonly isShared = true as unknown as false;
  leader: { mark: object; until: number } | undefined;
  isAway = false;
  /** True: every process that asks becomes the leader. */
  hasTwoLeaders = false;
  /** Told of everyone that asks for the right to lead. */
  asks: (mark: object) => unknown = () => {};

  /** A process asks the store something else. */
  readonly otherCall = new Set<() => void>();

  constructor(private readonly time: ManualClock) {
    super(time);
  }

  of(mark: object): BoardStore {
    const view = Object.create(this) as BoardStore & { close(): void };
    view.lead = (termMs) => {
      this.asks(mark);
      if (this.isAway) return Promise.reject(new Error('away'));
      if (this.hasTwoLeaders) return Promise.resolve(true);
      const now = this.time.now();
      if (this.leader === undefined || this.leader.until <= now || this.leader.mark === mark) {
        this.leader = { mark, until: now + termMs * 1000 };
      }
      return Promise.resolve(this.leader.mark === mark);
    };
    view.write = async (...figures) => {
      if (this.isAway) throw new Error('away');
      const { isWatched } = await this.write(...figures);
      const { leader } = this;
      const isLed = leader !== undefined && leader.until > this.time.now();
      return { isWatched, isLedByAnother: isLed && leader.mark !== mark && !this.hasTwoLeaders };
    };
    view.onOtherCall = (listener) => {
      this.otherCall.add(listener);
      return () => void this.otherCall.delete(listener);
    };
    view.resign = () => Promise.resolve(void (this.leader = undefined));
    view.close = () => {};
    return view;
  }
}
