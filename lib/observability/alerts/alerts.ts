import { type Clock } from '../../common/clock.js';
import { spread } from '../../common/ids.js';
import { InvalidArgumentError } from '../../common/errors.js';
import { oneOf } from '../../common/validate.js';
import { type FiringCount } from '../families.js';
import { OTHER } from '../series-table.js';
import { type Series } from '../series.js';
import { type Facts } from '../sources.js';
import { fingerprintOf, sentenceOf, type Alert, type AlertOrigin } from './alert.js';
import { Conditions } from './conditions.js';
import { checkAlerts, isHeld, type AlertSettings, type Mute, type Rule } from './rules.js';
import { RULE_NAMES, type RuleName } from './rule-names.js';
import { AlertStates, type Standing } from './states.js';

/** A table with the series and what all parts have counted, as of one second. */
export interface Seen {
  readonly nowMicros: number;
  readonly facts: Facts;
  readonly series: readonly Series[];
}

/**
 * Who tells for the fleet. Each process tells for itself as long as nobody leads; where somebody does, the
 * others look only at what each must see for itself.
 */
export interface AlertLead {
  readonly leads: boolean;
}

export interface AlertParts extends AlertOrigin {
  readonly clock: Clock;
  /** Told of what begins and ends, together for each second. */
  readonly tell: (alerts: readonly Alert[]) => void;
  readonly lead?: AlertLead;
}

/** Of the processes that see the store away about so many tell, and not all at the same instant. */
const STORE_TELLERS = 3;
/** By chance it may be nobody, once in twenty; so after a while there are more of them. */
const LATE_TELLERS = 9;
const LATE_MS = 120_000;
const STORE_SPREAD_MS = 30_000;
const PLACES = 10_000;

/** What is shown of an alert that is over, after it was told. */
const SHOWN_MS = 600_000;

/** Looks at the figures by the rules, once a second, and tells what changes. */
export class Alerts {
  private settings: AlertSettings = checkAlerts();
  private readonly states = new AlertStates();
  private readonly conditions = new Conditions();
  private readonly mutes: { readonly rule: RuleName; readonly mute: Mute }[] = [];
  /** When each rule is looked at next. */
  private readonly due = new Map<string, number>();
  private nodes = 1;
  /** Tokens per second of the whole cluster. */
  private capacity: number | undefined;
  private cluster: string;

  constructor(private readonly parts: AlertParts) {
    this.cluster = parts.cluster;
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

  /** What is not quiet: what fires first. */
  list(): Alert[] {
    const nowMicros = this.parts.clock.now();
    const order = ['firing', 'pending', 'resolved'];
    return [...this.states.all()]
      .map((one) => this.alertOf(one, nowMicros))
      .sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || a.sinceMs - b.sinceMs);
  }

  /** Other rules, as of now: the next look is by them. */
  change(
    settings: AlertSettings,
    facts: { readonly capacity?: number | undefined; readonly cluster?: string | undefined },
  ): void {
    const kept = new Set(settings.rules.map(({ id }) => id));
    for (const { id } of this.settings.rules) {
      if (!kept.has(id)) this.states.remove(id, this.parts.clock.now());
    }
    this.settings = settings;
    this.capacity = facts.capacity;
    this.cluster = facts.cluster ?? this.parts.cluster;
    this.due.clear();
  }

  /** Alerts of a rule are looked at, but not told: of one series, or of all, until then. */
  mute(rule: string, series: string | undefined, until: Date): void {
    oneOf('rule', rule, RULE_NAMES);
    if (!(until instanceof Date) || Number.isNaN(until.getTime())) {
      throw new InvalidArgumentError('until', until, 'a Date');
    }
    const nowMs = this.nowMs();
    const left = this.mutes.filter(({ mute }) => mute.untilMs > nowMs);
    this.mutes.splice(0, this.mutes.length, ...left.slice(-(MOST_MUTES - 1)));
    this.mutes.push({ rule: rule as RuleName, mute: { series, untilMs: until.getTime() } });
  }

  look({ nowMicros, facts, series }: Seen): void {
    this.nodes = facts.limiter.store?.nodes ?? 1;
    this.conditions.read(facts, series, nowMicros, this.settings.rules);
    for (const rule of this.settings.rules) {
      if (nowMicros < (this.due.get(rule.id) ?? 0)) continue;
      // At multiples of it, as slots of the rings are.
      const everyMicros = rule.everyMs * 1000;
      this.due.set(rule.id, (Math.floor(nowMicros / everyMicros) + 1) * everyMicros);
      this.lookBy(rule, facts, series, nowMicros);
    }
    this.tellChanges(nowMicros);
  }

  private lookBy(rule: Rule, facts: Facts, series: readonly Series[], nowMicros: number): void {
    if (rule.name !== 'storeAway' && this.parts.lead?.leads === false) {
      // Somebody else tells of it from now on, and of its end.
      for (const one of this.states.of(rule.id)) this.states.forget(one);
      return;
    }
    if (isHeld(rule)) {
      const holding = this.conditions.of(rule.name);
      // What fires is looked at even where its resource is gone.
      const names = new Set([
        ...holding.keys(),
        ...this.states.of(rule.id).map((one) => one.series),
      ]);
      for (const name of names) {
        this.states.look(rule, name, { holds: holding.get(name) ?? false }, nowMicros);
      }
      return;
    }
    for (const one of series) {
      if (!rule.kinds.includes(one.kind) || one.of === OTHER) continue;
      const capacity = rule.name === 'peak' ? this.capacityOf(one, facts) : undefined;
      this.states.look(rule, one.name, { series: one, capacity }, nowMicros);
    }
  }

  private capacityOf({ kind, of }: Series, { limiter }: Facts): number | undefined {
    return kind === 'total' ? this.capacity : limiter.quota?.apps[of!]?.burst;
  }

  private tellChanges(nowMicros: number): void {
    const changes: Alert[] = [];
    for (const one of this.states.all()) {
      const { phase, sinceMicros, reason } = one.state;
      if (phase === 'firing' && !one.told && this.mayTell(one, nowMicros)) {
        one.told = true;
        changes.push(this.alertOf(one, nowMicros));
      }
      if (phase !== 'resolved') continue;
      if (one.told) changes.push(this.alertOf(one, nowMicros));
      one.told = false;
      const isOld = nowMicros - sinceMicros > SHOWN_MS * 1000;
      if (reason === 'rule removed' && isOld) this.states.forget(one);
    }
    if (changes.length > 0) this.parts.tell(changes);
  }

  private mayTell(one: Standing, nowMicros: number): boolean {
    if (this.isMuted(one)) return false;
    if (one.rule.name !== 'storeAway' || this.nodes <= STORE_TELLERS) return true;
    // Nobody leads while the store is away: chance by the node's name stands in for a leader.
    const { nodeId } = this.parts;
    const waitedMs = (nowMicros - one.firingMicros) / 1000;
    const tellers = waitedMs < LATE_MS ? STORE_TELLERS : LATE_TELLERS;
    if (spread(nodeId, PLACES) * this.nodes >= tellers * PLACES) return false;
    return waitedMs >= (spread(`${nodeId} wait`, PLACES) / PLACES) * STORE_SPREAD_MS;
  }

  private isMuted({ rule, series }: Standing): boolean {
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

  private alertOf(one: Standing, nowMicros: number): Alert {
    const { rule, series, state, firingMicros } = one;
    const { clock, nodeId } = this.parts;
    const { cluster } = this;
    const ms = (micros: number): number =>
      Math.round(clock.epochMs(nowMicros) - (nowMicros - micros) / 1000);
    const isOver = state.phase === 'resolved';
    return {
      ...{ rule: rule.id, series, state: state.phase as Alert['state'], severity: rule.severity },
      text: sentenceOf(rule, series, state),
      ...{ value: state.value, threshold: state.threshold },
      sinceMs: ms(state.phase === 'pending' ? state.sinceMicros : firingMicros),
      ...(isOver && { endedMs: ms(state.sinceMicros) }),
      ...(state.reason !== undefined && { reason: state.reason }),
      muted: this.isMuted(one),
      fingerprint: fingerprintOf(rule.id, series, cluster),
      ...{ nodeId, cluster },
    };
  }

  private nowMs(): number {
    return this.parts.clock.epochMs(this.parts.clock.now());
  }
}

const MOST_MUTES = 100;
