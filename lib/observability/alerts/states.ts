import { evaluate, QUIET, removed, type AlertState, type Subject } from './evaluate.js';
import { type Rule } from './rules.js';

/** More alerts at once are one event with many names, and nobody reads them. */
export const MOST_STATES = 200;

/** The state of one rule on one series, as long as it is not quiet. */
export interface StandingAlert {
  rule: Rule;
  readonly series: string;
  state: AlertState;
  /** Since when it fires; and by the wall clock of whoever saw that first, which is part of what is told. */
  firingMicros: number;
  firingMs: number;
  /** Whether anybody was told that it fires: nobody hears of the end of what they never heard of. */
  told: boolean;
}

/** The states of all rules: one for each rule and series, of those that are not quiet. */
export class AlertStates {
  private readonly standing = new Map<string, StandingAlert>();
  /** Alerts for which there was no room. */
  dropped = 0;

  constructor(
    private readonly epochMs: (micros: number) => number = (micros) => micros / 1000,
    private readonly most = MOST_STATES,
  ) {}

  all(): IterableIterator<StandingAlert> {
    return this.standing.values();
  }

  of(rule: string): StandingAlert[] {
    return [...this.standing.values()].filter((one) => one.rule.id === rule);
  }

  /** Takes over what another process has seen. */
  restore(all: readonly StandingAlert[]): void {
    this.standing.clear();
    for (const one of all.slice(0, this.most)) {
      this.standing.set(keyOf(one.rule, one.series), one);
    }
  }

  /** Looks at one series by one rule. */
  look(rule: Rule, series: string, subject: Subject, nowMicros: number): void {
    // Nearly always nothing stands, and most of what is looked at stays quiet: no key is made for that.
    const isAnything = this.standing.size > 0;
    const before = isAnything ? this.standing.get(keyOf(rule, series)) : undefined;
    const state = evaluate(rule, subject, before?.state ?? QUIET, nowMicros);
    if (state.phase === 'quiet' || state.phase === 'learning') {
      if (before !== undefined) this.standing.delete(keyOf(rule, series));
      return;
    }
    if (before === undefined) {
      return this.begin(keyOf(rule, series), { rule, series, state, nowMicros });
    }
    before.rule = rule;
    this.change(before, state, nowMicros);
  }

  /** A rule that is no more: what fires is over, what is not yet told is forgotten. */
  remove(rule: string, nowMicros: number): void {
    for (const [key, one] of this.standing) {
      if (one.rule.id !== rule) continue;
      if (one.state.phase === 'firing') one.state = removed(one.state, nowMicros);
      else if (one.state.phase === 'pending') this.standing.delete(key);
    }
  }

  forget({ rule, series }: StandingAlert): void {
    this.standing.delete(keyOf(rule, series));
  }

  private begin(
    key: string,
    one: Pick<StandingAlert, 'rule' | 'series' | 'state'> & { readonly nowMicros: number },
  ): void {
    if (this.standing.size >= this.most) {
      if (one.state.phase === 'firing') this.dropped++;
      return;
    }
    const { rule, series, state, nowMicros } = one;
    const firing = { firingMicros: nowMicros, firingMs: this.wallMs(nowMicros) };
    this.standing.set(key, { rule, series, state, ...firing, told: false });
  }

  private change(one: StandingAlert, state: AlertState, nowMicros: number): void {
    if (state.phase === 'firing' && one.state.phase !== 'firing') {
      one.firingMicros = nowMicros;
      one.firingMs = this.wallMs(nowMicros);
      one.told = false;
    }
    one.state = state;
  }

  private wallMs(micros: number): number {
    return Math.round(this.epochMs(micros));
  }
}

const keyOf = ({ id }: Rule, series: string): string => `${id} ${series}`;
