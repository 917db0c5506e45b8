import { type Cancel, type Clock } from './clock.js';

const MINUTE_MS = 60_000;

/** Where lines go: of trouble, and of its end. */
export interface StateLines {
  warn(text: string): void;
  log(text: string): void;
}

interface State {
  /** The state, while it lasts. */
  text: string;
  since: number;
  isOn: boolean;
  /** Its beginning is in the log, so its end has to be. */
  isTold: boolean;
  /** Times that the trouble has begun untold. */
  untold: number;
  /** Ends the minute in which no other beginning is logged. */
  minute: Cancel | undefined;
}

/**
 * Logs when a state begins and when it is over. A state that comes and goes is logged once a minute, however
 * often it does; what stays is never left untold.
 */
export class StateLog {
  private readonly states = new Map<string, State>();

  constructor(
    private readonly clock: Pick<Clock, 'now' | 'every'>,
    private readonly lines: StateLines,
  ) {}

  /** Names have to be few. While it lasts, only the first beginning counts. */
  began(name: string, text: string): void {
    const state = this.of(name);
    if (state.isOn) return;
    state.isOn = true;
    state.text = text;
    state.since = this.clock.now();
    if (state.minute === undefined) this.tell(state, '');
    else state.untold++;
  }

  /** `text` gets the time that the state lasted. Nothing is logged where none had begun. */
  over(name: string, text: (seconds: string) => string): void {
    const state = this.states.get(name);
    if (state?.isOn !== true) return;
    state.isOn = false;
    if (state.isTold) this.lines.log(text(this.secondsOf(state)));
    state.isTold = false;
  }

  isOn(name: string): boolean {
    return this.states.get(name)?.isOn === true;
  }

  close(): void {
    for (const { minute } of this.states.values()) minute?.();
    this.states.clear();
  }

  private of(name: string): State {
    let state = this.states.get(name);
    if (state === undefined) {
      state = { text: '', since: 0, isOn: false, isTold: false, untold: 0, minute: undefined };
      this.states.set(name, state);
    }
    return state;
  }

  private tell(state: State, more: string): void {
    this.lines.warn(`${state.text}${more}`);
    state.isTold = state.isOn;
    state.untold = 0;
    state.minute = this.clock.every(MINUTE_MS, () => this.minuteOver(state));
  }

  private minuteOver(state: State): void {
    state.minute?.();
    state.minute = undefined;
    if (state.untold === 0) return;
    const times = state.untold === 1 ? 'once more' : `${state.untold} times more`;
    const now = state.isOn ? `, and for ${this.secondsOf(state)} now` : ', and is over now';
    this.tell(state, ` (${times} within a minute${now})`);
  }

  private secondsOf({ since }: State): string {
    const seconds = (this.clock.now() - since) / 1_000_000;
    return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  }
}
