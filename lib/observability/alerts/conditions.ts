import { isNotClosed, type BreakerKind } from '../../protection/breaker-state.js';
import { type FleetMerge } from '../fleet/merge.js';
import { type JoinedCondition } from '../node-condition.js';
import { type Series } from '../series.js';
import { type Facts } from '../sources.js';
import { isHeld, type Held, type Rule } from './rules.js';
import { type StateRuleName } from './rule-names.js';

/** Answers of level 3 or 4 within so many seconds are a state that goes on. */
const LEVEL_SECONDS = 30;
/** Falls that are remembered, of one resource. */
const MOST_FALLS = 1000;

/** How a process is, or the whole fleet, as far as rules about states ask. What is undefined is not there. */
export interface StatesSeen {
  readonly storeIsUp: boolean | undefined;
  readonly overloaded: boolean | undefined;
  readonly standing: boolean | undefined;
  readonly breakers: Iterable<readonly [resource: string, state: BreakerKind]>;
  /** Falls of each resource on each node, so far. */
  readonly falls: Iterable<Falls>;
  /** Nodes that say nothing. */
  readonly silent: readonly string[];
  /** Nodes that are not on the latest revision. */
  readonly behind: number | undefined;
}

export type Falls = readonly [resource: string, count: number, node: string];

export function statesOfProcess(facts: Facts): StatesSeen {
  const { protection, degradation, calls, overload } = facts;
  return {
    storeIsUp: calls === undefined ? undefined : facts.storeIsUp,
    overloaded: facts.overloaded,
    standing: overload?.standing,
    breakers: Object.entries(protection).flatMap(([name, { breaker }]) =>
      breaker === undefined ? [] : [[name, breaker.state] as const],
    ),
    falls: (degradation?.resources ?? []).map(({ resource, trips }) => {
      return [resource, Object.values(trips).reduce((sum, one) => sum + one, 0), ''] as const;
    }),
    silent: [],
    behind: undefined,
  };
}

/** Each node has to see for itself that the store is away. */
export function statesOfFleet(merge: FleetMerge, condition: JoinedCondition): StatesSeen {
  return {
    storeIsUp: undefined,
    overloaded: condition.overloaded,
    standing: condition.line?.standing,
    breakers: condition.resources.flatMap(({ resource, breaker }) =>
      breaker === undefined ? [] : [[resource, breaker] as const],
    ),
    falls: merge.falls.values(),
    silent: merge.nodes().flatMap(({ node, isSilent }) => (isSilent ? [node] : [])),
    behind: condition.config?.behind,
  };
}

/** Which states hold now, and of what. A name that is not there is not in the state. */
export class Conditions {
  private readonly holding = new Map<StateRuleName, Map<string, boolean>>();
  /** Falls by node and resource: their number so far, and the instants of recent ones. */
  private readonly falls = new Map<string, { count: number; readonly atMicros: number[] }>();

  private isFirst = true;

  of(rule: StateRuleName): ReadonlyMap<string, boolean> {
    return this.holding.get(rule) ?? new Map<string, boolean>();
  }

  read(
    states: StatesSeen,
    series: readonly Series[],
    nowMicros: number,
    rules: readonly Rule[],
  ): void {
    const { storeIsUp, overloaded, standing, behind } = states;
    this.holding.clear();
    if (storeIsUp !== undefined) this.set('storeAway', 'store', !storeIsUp);
    if (overloaded !== undefined) this.set('overload', 'total', overloaded);
    if (standing !== undefined) this.set('line', 'total', standing);
    if (behind !== undefined) this.set('configBehind', 'total', behind > 0);
    for (const node of states.silent) this.set('nodeSilent', `node:${node}`, true);
    // One that tries again and again would never be open for long.
    for (const [name, state] of states.breakers)
      this.set('breakerOpen', `resource:${name}`, isNotClosed(state));
    for (const one of series) {
      if (one.kind !== 'resource') continue;
      const stretch = one.seconds.stretch(nowMicros, LEVEL_SECONDS);
      const isHeld = stretch.of('degraded3') + stretch.of('degraded4') > 0;
      this.set('levelHeld', one.name, isHeld);
    }
    const relapse = rules.find((rule): rule is Held => isHeld(rule) && rule.name === 'relapse');
    if (relapse !== undefined) this.readFalls(states, relapse, nowMicros);
  }

  /** Another process has begun to look: what this one remembers is of another time. */
  forget(): void {
    this.falls.clear();
    this.isFirst = true;
  }

  private readFalls(states: StatesSeen, { times, windowMs }: Held, nowMicros: number): void {
    for (const [resource, count, node] of states.falls) {
      const id = `${node} ${resource}`;
      let falls = this.falls.get(id);
      if (falls === undefined) {
        // A change before the first look has no instant.
        falls = { count: this.isFirst ? count : 0, atMicros: [] };
        this.falls.set(id, falls);
      }
      for (; falls.count < count; falls.count++) falls.atMicros.push(nowMicros);
      const first = falls.atMicros.findIndex((at) => nowMicros - at <= windowMs! * 1000);
      falls.atMicros.splice(0, first < 0 ? falls.atMicros.length : first);
      falls.atMicros.splice(0, falls.atMicros.length - MOST_FALLS);
      const name = `resource:${resource}`;
      // On any node: that all of them fall once is one outage.
      const holds = falls.atMicros.length >= times! || this.of('relapse').get(name) === true;
      this.set('relapse', name, holds);
    }
    this.isFirst = false;
  }

  private set(rule: StateRuleName, name: string, holds: boolean): void {
    let names = this.holding.get(rule);
    if (names === undefined) this.holding.set(rule, (names = new Map<string, boolean>()));
    names.set(name, holds);
  }
}
