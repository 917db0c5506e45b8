import { sharedMicros, type Standstill } from './protocol.js';

const LOOK_EVERY_MICROS = 2000;
/** Shorter ones are of no account. */
const SHORTEST_MICROS = 5000;

/** Notes when the event loop did not come round: the machine was busy with others, or the process itself was. */
export class StandstillWatch {
  private seen: Standstill[] = [];
  private last = sharedMicros();
  private readonly timer = setInterval(() => this.look(), LOOK_EVERY_MICROS / 1000).unref();

  /** Those since it was last asked. */
  take(): Standstill[] {
    return this.seen.splice(0);
  }

  end(): void {
    clearInterval(this.timer);
  }

  private look(): void {
    const toMicros = sharedMicros();
    const micros = toMicros - this.last - LOOK_EVERY_MICROS;
    this.last = toMicros;
    if (micros > SHORTEST_MICROS) this.seen.push({ toMicros, micros });
  }
}
