interface Move {
  readonly begun: number;
  readonly second: number;
  readonly tokens: number;
}

/** Spans that begin at one instant: what was used in them, and what had flowed in before them. */
interface Spans {
  readonly from: number;
  sum: number;
}

/**
 * The least depth of a bucket that admits all that was admitted: the most, over all spans, by which
 * the tokens that were asked for and admitted within the span exceed what has flowed in. Kept apart
 * from the library's own arithmetic on purpose.
 */
export class NeededDepth {
  /** Later spans come later and have the larger sums; any other is never the worst again. */
  private spans: Spans[] = [];
  /** Moves in the order in which they ended; tokens that came back are negative. */
  private readonly moves: Move[] = [];
  /** The inflow up to each instant at which the rate changed, or something was added. */
  private readonly turns: { readonly second: number; inflow: number; rate: number }[];

  /** `rate` is in tokens per second. */
  constructor(rate: number) {
    this.turns = [{ second: 0, inflow: 0, rate }];
  }

  /** Tokens asked for at `begun` and admitted at `second`. The need of the spans that end now. */
  add(tokens: number, begun: number, second: number): number {
    const inflow = this.inflowAt(second);
    const { spans } = this;
    let at = spans.length;
    while (at > 0 && spans[at - 1]!.from > begun) at--;
    spans.splice(at, 0, { from: begun, sum: this.inflowAt(begun) + this.since(begun) });
    this.moves.push({ begun, second, tokens });
    for (let i = 0; i <= at; i++) spans[i]!.sum += tokens;
    let most = -Infinity;
    this.spans = spans.filter(({ sum }) => {
      if (sum <= most) return false;
      most = sum;
      return true;
    });
    return most - inflow;
  }

  /** Tokens came back: of every span that has begun by then. */
  giveBack(tokens: number, second: number): void {
    this.moves.push({ begun: second, second, tokens: -tokens });
    for (const spans of this.spans) spans.sum -= tokens;
  }

  /** Tokens admitted, less those that came back, in the span from that instant until now. */
  private since(from: number): number {
    let sum = 0;
    for (let i = this.moves.length - 1; i >= 0 && this.moves[i]!.second >= from; i--) {
      if (this.moves[i]!.begun >= from) sum += this.moves[i]!.tokens;
    }
    return sum;
  }

  /** Another rate from now on. */
  change(rate: number, second: number): void {
    this.turn(0, rate, second);
  }

  /** Adds tokens that have flowed in by then, for spans that have begun before. */
  allow(tokens: number, second: number): void {
    this.turn(tokens, this.turns.at(-1)!.rate, second);
  }

  private turn(tokens: number, rate: number, second: number): void {
    const inflow = this.inflowAt(second) + tokens;
    const last = this.turns.at(-1)!;
    if (last.second < second) this.turns.push({ second, inflow, rate });
    else Object.assign(last, { inflow, rate });
  }

  private inflowAt(second: number): number {
    const { turns } = this;
    let at = turns.length - 1;
    while (at > 0 && turns[at]!.second > second) at--;
    return turns[at]!.inflow + turns[at]!.rate * (second - turns[at]!.second);
  }
}

/** The same for a window: tokens asked for and admitted in any span of that length. */
export class SpanSum {
  private readonly admitted: { readonly begun: number; readonly tokens: number }[] = [];

  constructor(private readonly seconds: number) {}

  add(tokens: number, begun: number, second: number): number {
    const { admitted } = this;
    admitted.push({ begun, tokens });
    while (admitted.length > 0 && admitted[0]!.begun < second - 2 * this.seconds) admitted.shift();
    let sum = 0;
    for (const one of admitted) if (one.begun > second - this.seconds) sum += one.tokens;
    return sum;
  }
}
