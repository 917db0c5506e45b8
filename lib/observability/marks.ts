import { type NodeMode } from '../local/lease-calls.js';
import { type Facts } from './sources.js';
import { type Mark } from './state.js';

const MOST_MARKS = 64;

/** Changes from one second to the next that should be seen in charts: the last 64. */
export class Marks {
  private readonly marks: Mark[] = [];
  private before: Facts | undefined;
  private modes = new Map<string, NodeMode>();

  all(): Mark[] {
    return [...this.marks];
  }

  look(facts: Facts, atMs: number): void {
    const { before } = this;
    this.before = facts;
    const modes = modesOf(facts);
    const modesBefore = this.modes;
    this.modes = modes;
    for (const { app, perSecond, overloaded } of facts.adjusts) {
      const why = overloaded ? 'overload' : 'no overload';
      this.add(atMs, 'quota', `${app} may have ${Math.round(perSecond)}/s (${why})`);
    }
    if (before === undefined) return;
    if (facts.storeIsUp !== before.storeIsUp) {
      this.add(atMs, 'store', facts.storeIsUp ? 'Redis answers again' : 'Redis is away');
    }
    if (facts.epoch > before.epoch && before.epoch > 0) {
      this.add(atMs, 'epoch', `epoch ${facts.epoch}: the store has lost state`);
    }
    if ((facts.overloaded ?? false) !== (before.overloaded ?? false)) {
      this.add(atMs, 'overload', facts.overloaded ? 'overload begins' : 'overload is over');
    }
    const revision = facts.config?.revision ?? 0;
    if (revision > (before.config?.revision ?? 0)) {
      this.add(atMs, 'revision', `configuration ${revision}`);
    }
    for (const [app, mode] of modes) {
      const was = modesBefore.get(app);
      // Leases come and go by the second; only whether the store is asked at all is an event.
      if (was === undefined || (was === 'offline') === (mode === 'offline')) continue;
      this.add(atMs, 'mode', mode === 'offline' ? `${app} is offline` : `${app} is ${mode} again`);
    }
  }

  private add(atMs: number, kind: Mark['kind'], text: string): void {
    this.marks.push({ atMs, kind, text });
    if (this.marks.length > MOST_MARKS) this.marks.shift();
  }
}

const modesOf = ({ limiter }: Facts): Map<string, NodeMode> =>
  new Map(Object.entries(limiter?.quota?.apps ?? {}).map(([app, { mode }]) => [app, mode]));
