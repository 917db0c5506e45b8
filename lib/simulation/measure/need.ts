/**
 * What a bucket must hold at least to admit all that was admitted: the most, over all spans, by which
 * tokens exceed what has flowed in. Kept apart from the library's own arithmetic on purpose.
 */
export class Need {
  private beyond = 0;
  private last = 0;

  /** `rate` is in tokens per second. */
  constructor(private rate: number) {}

  /** The need of the spans that end now. */
  add(tokens: number, second: number): number {
    this.flow(second);
    this.beyond = Math.max(0, this.beyond + tokens);
    return this.beyond;
  }

  /** Another rate from now on. */
  change(rate: number, second: number): void {
    this.flow(second);
    this.rate = rate;
  }

  private flow(second: number): void {
    this.beyond = Math.max(0, this.beyond - this.rate * (second - this.last));
    this.last = second;
  }
}

/** The same for a window: tokens admitted in any span of that length. */
export class SpanSum {
  private readonly admitted: { readonly second: number; readonly tokens: number }[] = [];
  private sum = 0;
  private first = 0;

  add(tokens: number, second: number, span: number): number {
    const { admitted } = this;
    admitted.push({ second, tokens });
    this.sum += tokens;
    for (let next = admitted[this.first]!; next.second < second - span; ) {
      this.sum -= next.tokens;
      next = admitted[++this.first]!;
    }
    return this.sum;
  }
}
