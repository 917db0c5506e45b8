/** One figure of one contender in one scenario: a line of the table, and of the JSON file. */
export interface FigureRow {
  readonly scenario: string;
  readonly contender: string;
  readonly figure: string;
  readonly value: number;
  /** The promise in words; null if the figure is only shown. */
  readonly bar: string | null;
  readonly ok: boolean | null;
}

/** The figures of a scenario, gathered one by one. A value that is no number meets no bar. */
export class Findings {
  readonly rows: FigureRow[] = [];

  constructor(private readonly scenario: string) {}

  show(contender: string, figure: string, value: number): void {
    this.add(contender, figure, value, null, null);
  }

  atLeast(contender: string, figure: string, value: number, bar: number): void {
    this.add(contender, figure, value, `≥ ${inShort(bar)}`, value >= bar);
  }

  atMost(contender: string, figure: string, value: number, bar: number): void {
    this.add(contender, figure, value, `≤ ${inShort(bar)}`, value <= bar);
  }

  /** Shown only where there is no bar. */
  atLeastIf(contender: string, figure: string, value: number, bar: number | undefined): void {
    if (bar === undefined) this.show(contender, figure, value);
    else this.atLeast(contender, figure, value, bar);
  }

  atMostIf(contender: string, figure: string, value: number, bar: number | undefined): void {
    if (bar === undefined) this.show(contender, figure, value);
    else this.atMost(contender, figure, value, bar);
  }

  private add(
    contender: string,
    figure: string,
    value: number,
    bar: string | null,
    ok: boolean | null,
  ): void {
    this.rows.push({ scenario: this.scenario, contender, figure, value, bar, ok });
  }
}

/** Four digits that count, or all before the point. */
export function inShort(value: number): string {
  if (!Number.isFinite(value)) return 'none';
  const whole = Math.floor(Math.log10(Math.max(1, Math.abs(value)))) + 1;
  const maximumFractionDigits = Math.max(0, 5 - whole);
  return value.toLocaleString('en', { maximumFractionDigits });
}
