import { sharedMicros, type Stream } from './protocol.js';

const TICK_MS = 2;
/** A process that was stopped does not have to make up for more than this. */
const LONGEST_BACKLOG_MICROS = 200_000;

/** Puts questions at a steady pace and never waits for an answer, as callers of a service do. */
export class PacedLoad {
  private streams: { stream: Stream; due: number }[] = [];
  private lastMicros = sharedMicros();
  private readonly timer: NodeJS.Timeout;

  constructor(private readonly ask: (stream: Stream) => void) {
    this.timer = setInterval(() => this.tick(), TICK_MS);
  }

  offer(streams: readonly Stream[]): void {
    this.streams = streams.map((stream) => ({ stream, due: 0 }));
    this.lastMicros = sharedMicros();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private tick(): void {
    const now = sharedMicros();
    const elapsed = Math.min(now - this.lastMicros, LONGEST_BACKLOG_MICROS);
    this.lastMicros = now;
    for (const one of this.streams) {
      one.due += (one.stream.perSecond * elapsed) / 1_000_000;
      const { atOnce = 1 } = one.stream;
      for (; one.due >= atOnce; one.due -= atOnce) {
        for (let i = 0; i < atOnce; i++) this.ask(one.stream);
      }
    }
  }
}
