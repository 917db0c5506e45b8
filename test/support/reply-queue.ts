/**
 * Hands bytes on in order, each no sooner than a set delay after it came, and nothing while held.
 */
export class ReplyQueue {
  private readonly waiting: { readonly bytes: Buffer; readonly dueMs: number }[] = [];
  private timer: NodeJS.Timeout | undefined;
  private closing = false;
  private held = false;

  constructor(
    private readonly write: (bytes: Buffer) => void,
    private readonly onDrained: () => void,
  ) {}

  add(bytes: Buffer, delayMs: number): void {
    // A shorter delay than before must not let a reply overtake an earlier one.
    const dueMs = Math.max(performance.now() + delayMs, this.waiting.at(-1)?.dueMs ?? 0);
    this.waiting.push({ bytes, dueMs });
    this.flush();
  }

  set hold(held: boolean) {
    this.held = held;
    this.flush();
  }

  /** Replies that are still queued go out first; then `onDrained` is called. */
  closeWhenDrained(): void {
    this.closing = true;
    this.flush();
  }

  discard(): void {
    clearTimeout(this.timer);
    this.waiting.length = 0;
  }

  private flush(): void {
    clearTimeout(this.timer);
    if (this.held) return;
    for (;;) {
      const next = this.waiting[0];
      if (!next) break;
      const waitMs = next.dueMs - performance.now();
      if (waitMs > 0) {
        // Timers fire up to a millisecond early by this clock.
        this.timer = setTimeout(() => this.flush(), Math.ceil(waitMs));
        return;
      }
      this.waiting.shift();
      this.write(next.bytes);
    }
    if (this.closing) this.onDrained();
  }
}
