import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('stepped-clock.c', import.meta.url));

/**
 * The wall clock of one child process, which can be stepped while the process runs: a small library
 * that is loaded before the system's own (Linux only; needs a C compiler, `cc` unless CC names one).
 */
export class SteppedClock {
  /** The environment that the process has to be started with. */
  readonly env: Readonly<Record<string, string>>;
  private readonly file: string;
  private offsetMicros = 0n;

  /** `dir` is the process's own: the library and the offset are kept there. */
  constructor(dir: string) {
    const library = join(dir, 'stepped-clock.so');
    execFileSync(process.env.CC ?? 'cc', ['-shared', '-fPIC', '-O1', '-o', library, SOURCE]);
    this.file = join(dir, 'clock-offset');
    this.write();
    this.env = { LD_PRELOAD: library, STEPPED_CLOCK_FILE: this.file };
  }

  /** At once, and for good: what follows is counted from there. */
  step(ms: number): void {
    this.offsetMicros += BigInt(Math.round(ms * 1000));
    this.write();
  }

  /** Overwritten in place: the process has the file mapped. */
  private write(): void {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(this.offsetMicros);
    writeFileSync(this.file, bytes, { flag: this.offsetMicros === 0n ? 'w' : 'r+' });
  }
}
