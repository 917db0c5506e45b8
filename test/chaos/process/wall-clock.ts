const EVERY_MS = 100;

/** From now on `Date` jumps to and fro, as a machine's clock does whose time is being corrected. */
export function unsettleWallClock(stepsMs: number): void {
  const RealDate = Date;
  let offsetMs = 0;
  class SteppingDate extends RealDate {
    constructor(...args: unknown[]) {
      super(...((args.length === 0 ? [SteppingDate.now()] : args) as [number]));
    }

    static override now(): number {
      return RealDate.now() + offsetMs;
    }
  }
  globalThis.Date = SteppingDate as DateConstructor;
  const step = (): number => (offsetMs = offsetMs > 0 ? -stepsMs : stepsMs);
  setInterval(step, EVERY_MS).unref();
}
