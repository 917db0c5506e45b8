/** Spans that begin at one instant: what was used in them, and what had flowed in before them. */
interface Spans {
  readonly from: number;
  sum: number;
}

/**
 * What a bucket must hold at least to admit all that was admitted: the most, over all spans, by which
 * the tokens that were asked for and admitted within the span exceed what has flowed in. Kept apart
 * from the library's own arithmetic on purpose.
 */
export class Need {
  /** Later spans come later and have the larger sums; any other is never the worst again. */
  private spans: Spans[] = [];
  private readonly backs: { readonly second: number; readonly tokens: number }[] = [];
  private inflow = 0;
  private last = 0;

  /** `rate` is in tokens per second. */
  constructor(private rate: number) {}

  /** Tokens asked for at `begun` and admitted at `second`. The need of the spans that end now. */
  add(tokens: number, begun: number, second: number): number {
    this.flow(second);
    const { spans } = this;
    let at = spans.length;
    while (at > 0 && spans[at - 1]!.from > begun) at--;
    const flowedBefore = this.inflow - this.rate * (second - begun);
    spans.splice(at, 0, { from: begun, sum: flowedBefore - this.backSince(begun) });
    for (let i = 0; i <= at; i++) spans[i]!.sum += tokens;
    let most = -Infinity;
    this.spans = spans.filter(({ sum }) => {
      if (sum <= most) return false;
      most = sum;
      return true;
    });
    return most - this.inflow;
  }

  /** Tokens came back: of every span that has begun by then. */
  giveBack(tokens: number, second: number): void {
    this.backs.push({ second, tokens });
    for (const spans of this.spans) spans.sum -= tokens;
  }

  private backSince(begun: number): number {
    let sum = 0;
    for (const { second, tokens } of this.backs) if (second >= begun) sum += tokens;
    return sum;
  }

  /** Another rate from now on. */
  change(rate: number, second: number): void {
    this.flow(second);
    this.rate = rate;
  }

  private flow(second: number): void {
    this.inflow += this.rate * (second - this.last);
    this.last = second;
  }
}

/** The same for a window: tokens asked for and admitted in any span of that length. */
export class SpanSum {
  private readonly admitted: { readonly begun: number; readonly tokens: number }[] = [];

  constructor(private readonly seconds: number) {}

  add(tokens: number, begun: number, second: number): number {
    const { admitted } = this;
    admitted.push({ begun, tokens });
    while (admitted[0]!.begun < second - 2 * this.seconds) admitted.shift();
    let sum = 0;
    for (const one of admitted) if (one.begun > second - this.seconds) sum += one.tokens;
    return sum;
  }
}
