import { type Clock } from '../../common/clock.js';
import { spread } from '../../common/ids.js';
import { type FiringCount } from '../families.js';
import { OTHER } from '../series-table.js';
import { type Series } from '../series.js';
import { fingerprintOf, sentenceOf, type Alert, type AlertOrigin } from './alert.js';
import { Conditions, type StatesSeen } from './conditions.js';
import { checkAlerts, isHeld, type AlertSettings, type Mute, type Rule } from './rules.js';
import { type Muted } from './mutes.js';
import { AlertStates, type StandingAlert } from './states.js';

/** The series and the condition of the nodes, at one instant. */
export interface AlertsSeen {
  readonly nowMicros: number;
  readonly states: StatesSeen;
  readonly series: readonly Series[];
  /** The ceiling of an app, in tokens per second. */
  readonly ceilingOf: (app: string) => number | undefined;
  /** Processes that share the store. */
  readonly nodes: number;
}

export interface AlertsDeps extends AlertOrigin {
  readonly clock: Clock;
  /** Whether a rule is looked at here. Default: all are. */
  readonly watches?: (rule: Rule) => boolean;
  /** The instants of `look` are microseconds since 1970. Default: they are of the clock. */
  readonly isWallTime?: boolean;
}

/** Number of processes, about, that tell of a store that is away, out of all that see it; not all at the same instant. */
const STORE_TELLERS = 3;
/** More of them tell after a while: by chance the first lot may be nobody, once in twenty. */
const LATE_TELLERS = 9;
const LATE_MS = 120_000;
const STORE_SPREAD_MS = 30_000;
const PLACES = 10_000;

/** An alert that is over is shown for so long after it was told. */
const SHOWN_MS = 600_000;

/** Looks at figures by the rules, and says what changes. */
export class Alerts {
  private settings: AlertSettings;
  private readonly states: AlertStates;
  private readonly conditions = new Conditions();
  /** Mutes set by calls, beside those of the configuration. */
  private mutes: readonly Muted[] = [];
  /** When each rule is looked at next. */
  private readonly due = new Map<string, number>();
  private nodes = 1;
  /** Tokens per second of the whole cluster. */
  private capacity: number | undefined;
  private cluster: string;

  constructor(private readonly deps: AlertsDeps) {
    this.cluster = deps.cluster;
    this.settings = this.watched(checkAlerts());
    this.states = new AlertStates((micros) => this.epochMs(micros));
  }

  /** Alerts that fire, by rule and severity. */
  firing(): FiringCount[] {
    return this.settings.rules.map(({ id, severity }) => {
      const count = this.states.of(id).filter(({ state }) => state.phase === 'firing').length;
      return { rule: id, severity, count };
    });
  }

  /** Alerts for which there was no room. */
  get dropped(): number {
    return this.states.dropped;
  }

  /** Whether anything fires, or may soon. */
  get isAlarmed(): boolean {
    for (const { state } of this.states.all()) if (state.phase !== 'resolved') return true;
    return false;
  }

  /** Alerts that are not quiet, those that fire first. */
  list(): Alert[] {
    const order = ['firing', 'pending', 'resolved'];
    return [...this.states.all()]
      .map((one) => this.alertOf(one))
      .sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || a.sinceMs - b.sinceMs);
  }

  /** Other rules, as of now: the next look is by them. */
  change(
    all: AlertSettings,
    facts: { readonly capacity?: number | undefined; readonly cluster?: string | undefined },
  ): void {
    const settings = this.watched(all);
    const kept = new Set(settings.rules.map(({ id }) => id));
    for (const { id } of this.settings.rules) {
      if (!kept.has(id)) this.states.remove(id, this.now());
    }
    this.settings = settings;
    this.capacity = facts.capacity;
    this.cluster = facts.cluster ?? this.deps.cluster;
    this.due.clear();
  }

  /** Alerts that are looked at, but not told. */
  mute(mutes: readonly Muted[]): void {
    this.mutes = mutes;
  }

  look(seen: AlertsSeen): void {
    const { nowMicros, states, series } = seen;
    this.nodes = seen.nodes;
    this.conditions.read(states, series, nowMicros, this.settings.rules);
    for (const rule of this.settings.rules) {
      if (nowMicros < (this.due.get(rule.id) ?? 0)) continue;
      // At multiples of it, as slots of the rings are.
      const everyMicros = rule.everyMs * 1000;
      this.due.set(rule.id, (Math.floor(nowMicros / everyMicros) + 1) * everyMicros);
      this.lookBy(rule, seen);
    }
  }

  /** Alerts that have begun or ended since the last call, and may be told: they count as told from now on. */
  changes(nowMicros: number): Alert[] {
    const changes: Alert[] = [];
    for (const one of this.states.all()) {
      const { phase, sinceMicros, reason } = one.state;
      if (phase === 'firing' && !one.told && this.mayTell(one, nowMicros)) {
        one.told = true;
        changes.push(this.alertOf(one));
      }
      if (phase !== 'resolved') continue;
      if (one.told) changes.push(this.alertOf(one));
      one.told = false;
      const isOld = nowMicros - sinceMicros > SHOWN_MS * 1000;
      if (reason === 'rule removed' && isOld) this.states.forget(one);
    }
    return changes;
  }

  /** All that stands, for another process to go on with. */
  standing(): StandingAlert[] {
    return [...this.states.all()];
  }

  /** Goes on with what another process has seen, as far as the rules are still there. */
  restore(all: readonly (Omit<StandingAlert, 'rule'> & { readonly rule: string })[]): void {
    this.conditions.forget();
    this.due.clear();
    this.states.restore(
      all.flatMap((one) => {
        const rule = this.settings.rules.find(({ id }) => id === one.rule);
        return rule === undefined ? [] : [{ ...one, rule }];
      }),
    );
  }

  private lookBy(rule: Rule, { series, nowMicros, ceilingOf }: AlertsSeen): void {
    if (isHeld(rule)) {
      const holding = this.conditions.of(rule.name);
      // An alert that fires is looked at even where its resource is gone.
      const names = new Set([
        ...holding.keys(),
        ...this.states.of(rule.id).map((one) => one.series),
      ]);
      for (const name of names) {
        this.states.look(rule, name, { holds: holding.get(name) ?? false }, nowMicros);
      }
      return;
    }
    const capacityOf = ({ kind, of }: Series): number | undefined =>
      kind === 'total' ? this.capacity : ceilingOf(of!);
    for (const one of series) {
      if (!rule.kinds.includes(one.kind) || one.of === OTHER) continue;
      const capacity = rule.name === 'peak' ? capacityOf(one) : undefined;
      this.states.look(rule, one.name, { series: one, capacity }, nowMicros);
    }
  }

  private mayTell(one: StandingAlert, nowMicros: number): boolean {
    if (this.isMuted(one)) return false;
    if (one.rule.name !== 'storeAway' || this.nodes <= STORE_TELLERS) return true;
    // Nobody leads while the store is away: chance by the node's name stands in for a leader.
    const { nodeId } = this.deps;
    const waitedMs = (nowMicros - one.firingMicros) / 1000;
    const tellers = waitedMs < LATE_MS ? STORE_TELLERS : LATE_TELLERS;
    if (spread(nodeId, PLACES) * this.nodes >= tellers * PLACES) return false;
    return waitedMs >= (spread(`${nodeId} wait`, PLACES) / PLACES) * STORE_SPREAD_MS;
  }

  private isMuted({ rule, series }: StandingAlert): boolean {
    const nowMs = this.nowMs();
    const holds = (mute: Mute | undefined): boolean =>
      mute !== undefined &&
      mute.untilMs > nowMs &&
      (mute.series === undefined || mute.series === series);
    return (
      holds(this.settings.mutes.get(rule.name)) ||
      this.mutes.some((one) => one.rule === rule.name && holds(one.mute))
    );
  }

  private alertOf(one: StandingAlert): Alert {
    const { rule, series, state, firingMs } = one;
    const { nodeId } = this.deps;
    const { cluster } = this;
    const isOver = state.phase === 'resolved';
    return {
      ...{ rule: rule.id, series, state: state.phase as Alert['state'], severity: rule.severity },
      text: sentenceOf(rule, series, state),
      ...{ value: state.value, threshold: state.threshold },
      ...(state.isTrend && { isTrend: true }),
      sinceMs: state.phase === 'pending' ? Math.round(this.epochMs(state.sinceMicros)) : firingMs,
      ...(isOver && { endedMs: Math.round(this.epochMs(state.sinceMicros)) }),
      ...(state.reason !== undefined && { reason: state.reason }),
      muted: this.isMuted(one),
      fingerprint: fingerprintOf(rule.id, series, cluster),
      ...{ nodeId, cluster },
    };
  }

  private watched(all: AlertSettings): AlertSettings {
    const { watches } = this.deps;
    return watches === undefined ? all : { ...all, rules: all.rules.filter(watches) };
  }

  /** Wall-clock time of an instant of `look`. */
  private epochMs(micros: number): number {
    if (this.deps.isWallTime === true) return micros / 1000;
    const { clock } = this.deps;
    const now = clock.now();
    return clock.epochMs(now) - (now - micros) / 1000;
  }

  /** Now, as an instant of `look`. */
  private now(): number {
    const now = this.deps.clock.now();
    return this.deps.isWallTime === true ? this.deps.clock.epochMs(now) * 1000 : now;
  }

  private nowMs(): number {
    return this.deps.clock.epochMs(this.deps.clock.now());
  }
}
