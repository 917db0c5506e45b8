import { type Series } from '../series.js';
import { type Facts } from '../sources.js';
import { isHeld, type Held, type Rule } from './rules.js';
import { type StateRuleName } from './rule-names.js';

/** Answers of level 3 or 4 within so many seconds are a state that goes on. */
const LEVEL_SECONDS = 30;
/** Falls that are remembered, of one resource. */
const MOST_FALLS = 1000;

/** Which states hold now, and of what. A name that is not there is not in the state. */
export class Conditions {
  private readonly holding = new Map<StateRuleName, Map<string, boolean>>();
  /** When each resource fell, and how often it had by then. */
  private readonly falls = new Map<string, { count: number; readonly atMicros: number[] }>();

  of(rule: StateRuleName): ReadonlyMap<string, boolean> {
    return this.holding.get(rule) ?? new Map<string, boolean>();
  }

  read(facts: Facts, series: readonly Series[], nowMicros: number, rules: readonly Rule[]): void {
    this.holding.clear();
    if (facts.calls !== undefined) this.set('storeAway', 'store', !facts.storeIsUp);
    if (facts.overloaded !== undefined) this.set('overload', 'total', facts.overloaded);
    if (facts.overload !== undefined) this.set('line', 'total', facts.overload.standing);
    for (const [name, { breaker }] of Object.entries(facts.protection)) {
      if (breaker !== undefined) {
        this.set('breakerOpen', `resource:${name}`, breaker.state === 'open');
      }
    }
    for (const one of series) {
      if (one.kind !== 'resource') continue;
      const { degraded3, degraded4 } = one.seconds.sum(nowMicros, LEVEL_SECONDS);
      this.set('levelHeld', one.name, degraded3 + degraded4 > 0);
    }
    const relapse = rules.find((rule): rule is Held => isHeld(rule) && rule.name === 'relapse');
    if (relapse !== undefined) this.readFalls(facts, relapse, nowMicros);
  }

  private readFalls({ degradation }: Facts, { times, windowMs }: Held, nowMicros: number): void {
    for (const { resource, trips } of degradation?.resources ?? []) {
      const count = Object.values(trips).reduce((sum, one) => sum + one, 0);
      let falls = this.falls.get(resource);
      // What happened before the first look has no instant.
      if (falls === undefined) this.falls.set(resource, (falls = { count, atMicros: [] }));
      for (; falls.count < count; falls.count++) falls.atMicros.push(nowMicros);
      const first = falls.atMicros.findIndex((at) => nowMicros - at <= windowMs! * 1000);
      falls.atMicros.splice(0, first < 0 ? falls.atMicros.length : first);
      falls.atMicros.splice(0, falls.atMicros.length - MOST_FALLS);
      this.set('relapse', `resource:${resource}`, falls.atMicros.length >= times!);
    }
  }

  private set(rule: StateRuleName, name: string, holds: boolean): void {
    let names = this.holding.get(rule);
    if (names === undefined) this.holding.set(rule, (names = new Map<string, boolean>()));
    names.set(name, holds);
  }
}
