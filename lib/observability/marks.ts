import { type NodeMode } from '../local/lease-calls.js';
import { isNotClosed, type BreakerKind } from '../protection/breaker-state.js';
import { type Facts } from './sources.js';
import { breakerCloses, breakerOpens, OVERLOAD_BEGINS, OVERLOAD_ENDS, type Mark } from './state.js';

const MOST_MARKS = 64;
/** No chart goes further back. */
const KEPT_MS = 168 * 3_600_000;

/** Where there is no room: what charts do not show, then what comes along with another event, goes before the others. */
const worth = ({ kind }: Mark): number => (kind === 'quota' ? 0 : kind === 'mode' ? 1 : 2);

/** As many as are kept, oldest first: none of them goes for one that says less. */
export function keptMarks(marks: readonly Mark[], nowMs: number): Mark[] {
  return marks
    .filter(({ atMs }) => nowMs - atMs <= KEPT_MS)
    .sort((one, other) => worth(other) - worth(one) || other.atMs - one.atMs)
    .slice(0, MOST_MARKS)
    .sort((one, other) => one.atMs - other.atMs);
}

/** Changes from one second to the next that should be seen in charts. */
export class Marks {
  private marks: Mark[] = [];
  private before: Facts | undefined;
  private modes = new Map<string, NodeMode>();
  private readonly breakers = new BreakerMarks();

  all(): Mark[] {
    return [...this.marks];
  }

  look(facts: Facts, atMs: number): void {
    const changes = this.changesTo(facts).map(([kind, text]) => ({ atMs, kind, text }));
    const breakers = Object.entries(facts.protection ?? {}).map(([resource, { breaker }]) => {
      return { resource, breaker: breaker?.state };
    });
    changes.push(...this.breakers.look(breakers, atMs));
    if (changes.length > 0) this.marks = keptMarks([...this.marks, ...changes], atMs);
  }

  private changesTo(facts: Facts): [kind: Mark['kind'], text: string][] {
    const { before, modes: modesBefore } = this;
    const modes = modesOf(facts);
    this.before = facts;
    this.modes = modes;
    const changes = facts.adjusts.map(({ app, perSecond, overloaded }): [Mark['kind'], string] => {
      const why = overloaded ? 'overload' : 'no overload';
      return ['quota', `${app} may have ${Math.round(perSecond)}/s (${why})`];
    });
    if (before === undefined) return changes;
    if (facts.storeIsUp !== before.storeIsUp) {
      changes.push(['store', facts.storeIsUp ? 'Redis answers again' : 'Redis is away']);
    }
    if (facts.epoch > before.epoch && before.epoch > 0) {
      changes.push(['epoch', `epoch ${facts.epoch}: the store has lost state`]);
    }
    if ((facts.overloaded ?? false) !== (before.overloaded ?? false)) {
      changes.push(['overload', facts.overloaded ? OVERLOAD_BEGINS : OVERLOAD_ENDS]);
    }
    const revision = facts.config?.revision ?? 0;
    if (revision > (before.config?.revision ?? 0)) {
      changes.push(['revision', `configuration ${revision}`]);
    }
    for (const [app, mode] of modes) {
      const was = modesBefore.get(app);
      // Leases come and go by the second; only whether the store is asked at all is an event.
      if (was === undefined || (was === 'offline') === (mode === 'offline')) continue;
      changes.push(['mode', mode === 'offline' ? `${app} is offline` : `${app} is ${mode} again`]);
    }
    return changes;
  }
}

const modesOf = ({ limiter }: Facts): Map<string, NodeMode> =>
  new Map(Object.entries(limiter?.quota?.apps ?? {}).map(([app, { mode }]) => [app, mode]));

interface SeenBreaker {
  readonly resource: string;
  readonly breaker: BreakerKind | undefined;
}

/** Tells when a breaker opens, and when it is closed: one that tries again and again has opened once. */
export class BreakerMarks {
  private open: ReadonlySet<string> | undefined;

  /** `whereOf` says on which nodes, where there are several. */
  look(
    all: readonly SeenBreaker[],
    atMs: number,
    whereOf: (resource: string) => string = () => '',
  ): Mark[] {
    const { open: before } = this;
    const open = new Set(
      all.flatMap(({ resource, breaker }) => (isNotClosed(breaker) ? resource : [])),
    );
    this.open = open;
    // What was so before the first look has no instant.
    if (before === undefined) return [];
    const opened = [...open].filter((resource) => !before.has(resource));
    const closed = [...before].filter((resource) => !open.has(resource));
    const mark = (text: string): Mark => ({ atMs, kind: 'breaker', text });
    return [
      ...opened.map((resource) => mark(`${breakerOpens(resource)}${whereOf(resource)}`)),
      ...closed.map((resource) => mark(breakerCloses(resource))),
    ];
  }
}
