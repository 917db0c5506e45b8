import { type ServerCall } from './server-calls.js';

/**
 * Stops request streams while they are decided on. Nest keeps messages that come before the handler
 * runs and replays them a turn later, and in between new ones overtake them (12) or the stream
 * never ends (11). None can while the call is paused.
 */
export class HeldStreams {
  private readonly holds = new WeakMap<ServerCall, number>();

  hold(call: ServerCall): void {
    this.holds.set(call, (this.holds.get(call) ?? 0) + 1);
    call.pause!();
  }

  /** Nest replays one turn after the handler was called; whatever comes later is in order. */
  release(call: ServerCall): void {
    setImmediate(() =>
      setImmediate(() => {
        const left = this.holds.get(call)! - 1;
        this.holds.set(call, left);
        if (left === 0) call.resume!();
      }),
    );
  }
}
