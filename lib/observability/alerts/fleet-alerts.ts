import { newIncarnation } from '../../common/ids.js';
import { type BoardStore } from '../../stores/board-store.js';
import { type Alert } from './alert.js';
import { type Alerts, type AlertsSeen } from './alerts.js';
import { type AlertPhase, type AlertState } from './evaluate.js';
import { type StandingAlert } from './states.js';

/** On the board, under this name. */
const NAME = 'alerts';
const KEPT_MS = 8 * 24 * 3_600_000;
/** Written at least so often, so that the instants in it are known that well. */
const SAVE_AGAIN_MICROS = 10_000_000;
/** Time for which another leader may have been gone without a word, beyond that. */
const LONGEST_GAP_MICROS = 30_000_000;

/**
 * The alerts of a fleet, by the process that leads it. What stands is on the board, and is written there before anybody
 * is told: so the next leader tells nothing again, and of two that lead for a moment only one tells.
 */
export class FleetAlerts {
  private mark: string | undefined;
  private saved = '';
  private savedMicros = -Infinity;
  /** The changes of a write of which no answer came: if it is there after all, nobody was told of them. */
  private unsure: { readonly mark: string; readonly changes: readonly Alert[] } | undefined;

  constructor(
    readonly alerts: Alerts,
    private readonly board: BoardStore,
    private readonly tell: (alerts: readonly Alert[]) => void,
  ) {}

  /** This process leads from now on. */
  async begin(nowMicros: number): Promise<void> {
    const held = await this.board.marked(NAME);
    this.mark = held?.mark;
    this.alerts.restore(held === undefined ? [] : standingOf(held.text, nowMicros));
    this.saved = signatureOf(this.alerts.standing());
    this.savedMicros = nowMicros;
    const { unsure } = this;
    this.unsure = undefined;
    if (unsure !== undefined && unsure.mark === held?.mark) this.tell(unsure.changes);
  }

  async look(seen: AlertsSeen): Promise<void> {
    this.alerts.look(seen);
    const changes = this.alerts.changes(seen.nowMicros);
    const standing = this.alerts.standing();
    const signature = signatureOf(standing);
    const isOld = seen.nowMicros - this.savedMicros >= SAVE_AGAIN_MICROS;
    if (signature === this.saved && !(isOld && standing.length > 0)) return;
    const next = { mark: newIncarnation(), text: textOf(standing, seen.nowMicros) };
    this.unsure = { mark: next.mark, changes };
    const isWritten = await this.board.swap(NAME, this.mark, next, KEPT_MS);
    this.unsure = undefined;
    // Another node leads as well, and its write holds.
    if (!isWritten) return await this.begin(seen.nowMicros);
    this.mark = next.mark;
    this.saved = signature;
    this.savedMicros = seen.nowMicros;
    if (changes.length > 0) this.tell(changes);
  }

  /** Another node leads, and tells. */
  end(): void {
    this.alerts.restore([]);
  }
}

/** Changes whenever the next leader would do something else. */
const signatureOf = (all: readonly StandingAlert[]): string =>
  JSON.stringify(
    all.map(({ rule, series, state: { phase, goneMicros }, firingMs, told }) => [
      ...[rule.id, series, phase, goneMicros !== undefined, firingMs, told],
    ]),
  );

type WireAlert = [
  ...[rule: string, series: string, phase: AlertPhase, sinceMicros: number, firingMicros: number],
  ...[firingMs: number, told: boolean, state: Omit<AlertState, 'phase' | 'sinceMicros'>],
];

function textOf(all: readonly StandingAlert[], atMicros: number): string {
  const states = all.map(({ rule, series, state, firingMicros, firingMs, told }): WireAlert => {
    const { phase, sinceMicros, ...rest } = state;
    return [rule.id, series, phase, sinceMicros, firingMicros, firingMs, told, rest];
  });
  return JSON.stringify({ v: 1, at: atMicros, states });
}

type Restored = Omit<StandingAlert, 'rule'> & { readonly rule: string };

/**
 * Checks all of it: anybody who may write to the store can have put it there. Instants are of the clock of another process,
 * which may be an hour off: only the time between them counts, and what has passed since, as far as it can be.
 */
function standingOf(text: string, nowMicros: number): Restored[] {
  try {
    const { v, at, states } = JSON.parse(text) as { v: unknown; at: unknown; states: unknown };
    if (v !== 1 || !isFigure(at) || !Array.isArray(states)) return [];
    const gap = Math.min(Math.max(nowMicros - at, 0), LONGEST_GAP_MICROS);
    const shift = nowMicros - gap - at;
    return states.flatMap((one: unknown) => restored(one, shift) ?? []);
  } catch {
    return [];
  }
}

const PHASES: readonly unknown[] = ['pending', 'firing', 'resolved'];
const REASONS: readonly unknown[] = [undefined, 'new usual', 'rule removed'];

function restored(wire: unknown, shift: number): Restored | undefined {
  if (!Array.isArray(wire)) return undefined;
  const [rule, series, phase, since, firing, firingMs, told, rest] = wire as Partial<WireAlert>;
  if (typeof rule !== 'string' || typeof series !== 'string') return undefined;
  if (!PHASES.includes(phase) || !isFigure(since) || !isFigure(firing)) return undefined;
  const { value, threshold, times, baseline, limit, isTrend, goneMicros, reason } = rest ?? {};
  if (!isFigure(firingMs) || !isFigure(value) || !isFigure(threshold) || !isFigure(times)) {
    return undefined;
  }
  if (!REASONS.includes(reason)) return undefined;
  const state: AlertState = {
    ...{ phase: phase!, sinceMicros: since + shift, value, threshold, times },
    ...(isFigure(baseline) && { baseline }),
    ...(isFigure(limit) && { limit, isTrend: isTrend === true }),
    ...(isFigure(goneMicros) && { goneMicros: goneMicros + shift }),
    ...(reason !== undefined && { reason }),
  };
  return { rule, series, state, firingMicros: firing + shift, firingMs, told: told === true };
}

const isFigure = (value: unknown): value is number => Number.isFinite(value);
