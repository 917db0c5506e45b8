import { LoopDelay } from '../../sample/06-product-page/loop-delay.js';
import { type Answer, type ProductPage } from './product-page.js';

/**
 * So many of a user's requests may be on their way. A page that hangs must not be asked for ever, and a machine
 * that is busy with something else is not to be blamed for what it has no time for.
 */
const MOST_UNDER_WAY = 2;

export interface Seen extends Answer {
  readonly user: string;
  readonly product: string;
}

/** Users who ask again and again, at a steady pace, whether their last request was answered or not. */
export class PacedViewers {
  readonly seen: Seen[] = [];
  /** Requests to which nothing came, or no whole answer. */
  readonly unanswered: unknown[] = [];
  private readonly loop = new LoopDelay();
  private readonly underWay = new Set<Promise<void>>();
  private asked = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly page: ProductPage,
    private readonly users: readonly string[],
  ) {}

  begin(everyMs: number): void {
    this.loop.begin();
    this.timer = setInterval(() => this.askOnce(), everyMs);
  }

  /** Resolves when everybody has an answer. */
  async end(): Promise<void> {
    clearInterval(this.timer);
    await Promise.all(this.underWay);
    this.loop.end();
  }

  /** The delay of this process itself, p99.9. */
  get lateMs(): number {
    return this.loop.spread().p999Ms;
  }

  /** Most look at what all look at; every fifth at something that no cache has. */
  private askOnce(): void {
    if (this.underWay.size >= MOST_UNDER_WAY * this.users.length) return;
    const turn = this.asked++;
    const user = this.users[turn % this.users.length]!;
    const product = turn % 5 === 0 ? this.page.unknownProduct() : '1';
    const asking = this.page
      .ask(product, user)
      .then((answer) => void this.seen.push({ ...answer, user, product }))
      .catch((error: unknown) => void this.unanswered.push(error))
      .finally(() => this.underWay.delete(asking));
    this.underWay.add(asking);
  }
}

/** The value that so many of them are not above. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? 0;
}
