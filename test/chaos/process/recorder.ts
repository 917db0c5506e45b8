import { type Decision } from 'nestjs-weir';
import { FIGURES_PER_ADMISSION, SOURCES, sharedMicros, type Totals } from './protocol.js';

/** Writes down what became of each request, and hands it over in lots. */
export class Recorder {
  readonly totals: Totals = {
    asked: 0,
    answered: 0,
    admitted: 0,
    atOnce: 0,
    failed: 0,
    longestWaitMicros: 0,
    strays: [],
  };
  private lot: number[] = [];
  private reported = { asked: 0, atOnce: 0 };

  constructor(private readonly apps: readonly string[]) {
    process.on('unhandledRejection', (reason) => this.stray('rejection', reason));
    process.on('uncaughtException', (error) => this.stray('exception', error));
    process.on('warning', (warning) => this.stray('warning', warning));
  }

  /** Asks, and notes when the question was put and when the answer was here. */
  async ask(
    question: () => Decision | Promise<Decision>,
    app: string,
    cost: number,
  ): Promise<void> {
    const from = sharedMicros();
    this.totals.asked++;
    try {
      let decision = question();
      if (decision instanceof Promise) decision = await decision;
      else this.totals.atOnce++;
      this.note(decision, from, app, cost);
    } catch (error) {
      this.totals.failed++;
      this.stray('refusal', error);
    }
    this.totals.answered++;
  }

  /** Admissions that have not been handed over before. */
  takeLot(): { admissions: Float64Array; asked: number; atOnce: number } {
    const { lot, reported, totals } = this;
    const { asked, atOnce } = totals;
    this.lot = [];
    this.reported = { asked, atOnce };
    return {
      admissions: Float64Array.from(lot),
      asked: asked - reported.asked,
      atOnce: atOnce - reported.atOnce,
    };
  }

  private note(decision: Decision, from: number, app: string, cost: number): void {
    const to = sharedMicros();
    const { totals } = this;
    totals.longestWaitMicros = Math.max(totals.longestWaitMicros, to - from);
    if (!decision.allowed) return;
    totals.admitted++;
    const source = SOURCES.indexOf(decision.source);
    const figures = [from, to, cost, this.apps.indexOf(app), source];
    if (figures.length !== FIGURES_PER_ADMISSION) throw new Error('a line of another length');
    this.lot.push(...figures);
  }

  private stray(kind: string, what: unknown): void {
    const text = what instanceof Error ? (what.stack ?? what.message) : String(what);
    this.totals.strays.push(`${kind}: ${text}`);
  }
}
