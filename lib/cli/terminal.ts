/** A terminal, as far as a full-screen command needs one; tests have their own. */
export interface Terminal {
  /** False where the output is a file or a pipe. */
  readonly isTerminal: boolean;
  readonly columns: number;
  readonly rows: number;
  /** Whether colours are wanted. */
  readonly hasColors: boolean;
  write(text: string): void;
  /** Takes the screen over, and gives it back however the process ends. `ended` is called once, with the exit code. */
  open(on: TerminalListeners): () => void;
  /** Calls back when the process is asked to end; the result stops listening. */
  onEnd(ended: (code: number) => void): () => void;
}

export interface TerminalListeners {
  readonly key: (key: string) => void;
  readonly resize: () => void;
  readonly ended: (code: number) => void;
}

/** The parts of a process that a terminal is made of. */
export interface TerminalProcess {
  readonly stdin: {
    readonly isTTY?: boolean;
    setRawMode?(isRaw: boolean): unknown;
    resume(): unknown;
    pause(): unknown;
    on(event: 'data', listener: (data: Buffer) => void): unknown;
    off(event: 'data', listener: (data: Buffer) => void): unknown;
  };
  readonly stdout: {
    readonly isTTY?: boolean;
    readonly columns?: number;
    readonly rows?: number;
    write(text: string): unknown;
    on(event: 'resize', listener: () => void): unknown;
    off(event: 'resize', listener: () => void): unknown;
  };
  readonly env: Readonly<Record<string, string | undefined>>;
  on(event: 'SIGINT' | 'SIGTERM' | 'exit', listener: () => void): unknown;
  off(event: 'SIGINT' | 'SIGTERM' | 'exit', listener: () => void): unknown;
}

/** Another screen, so that what stood there is back afterwards; and no cursor. */
const TAKE = '\u001b[?1049h\u001b[?25l\u001b[2J';
const GIVE_BACK = '\u001b[?25h\u001b[?1049l';
/** In raw mode Ctrl-C is a sign like any other. */
const CTRL_C = '\u0003';
/** Exit codes as shells have them: 128 and the number of the signal. */
const CODES = { SIGINT: 130, SIGTERM: 143 } as const;

export function terminalOf(of: TerminalProcess): Terminal {
  const { stdin, stdout, env } = of;
  const onEnd: Terminal['onEnd'] = (ended) => {
    const interrupted = (): void => ended(CODES.SIGINT);
    const terminated = (): void => ended(CODES.SIGTERM);
    of.on('SIGINT', interrupted);
    of.on('SIGTERM', terminated);
    return () => {
      of.off('SIGINT', interrupted);
      of.off('SIGTERM', terminated);
    };
  };
  return {
    isTerminal: stdout.isTTY === true,
    hasColors: (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb',
    get columns() {
      return stdout.columns ?? 80;
    },
    get rows() {
      return stdout.rows ?? 24;
    },
    write: (text) => void stdout.write(text),
    onEnd,
    open({ key, resize, ended }) {
      let isOpen = true;
      const close = (): void => {
        if (!isOpen) return;
        isOpen = false;
        for (const stop of stops) stop();
        stdout.write(GIVE_BACK);
      };
      const typed = (data: Buffer): void => {
        const text = data.toString();
        if (text === CTRL_C) return ended(CODES.SIGINT);
        key(text);
      };
      const stops = [
        onEnd(ended),
        () => of.off('exit', close),
        () => stdout.off('resize', resize),
        () => {
          stdin.off('data', typed);
          stdin.setRawMode?.(false);
          stdin.pause();
        },
      ];
      // A crash ends the process by way of it.
      of.on('exit', close);
      stdout.on('resize', resize);
      stdin.setRawMode?.(true);
      stdin.resume();
      stdin.on('data', typed);
      stdout.write(TAKE);
      return close;
    },
  };
}
