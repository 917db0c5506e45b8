import { type ChildProcess, spawn } from 'node:child_process';
import type { Writable } from 'node:stream';

// Reads what to look after, and acts when its input ends: that is when its starter is gone.
const SCRIPT = `
trap '' INT TERM HUP
pids=' '
dirs=''
while read -r verb what; do
  case $verb in
    process) pids="$pids$what " ;;
    forget) pids="\${pids%% $what *} \${pids#* $what }" ;;
    directory) dirs="$dirs $what" ;;
  esac
done
for pid in $pids; do kill -9 "$pid"; done
for dir in $dirs; do rm -rf "$dir"; done
`;

/**
 * A shell that waits for this process to end and then ends what it left behind. An exit handler
 * would not do: none runs on SIGKILL.
 */
export class Reaper {
  private shell: (ChildProcess & { stdin: Writable }) | undefined;

  watchProcess(pid: number): void {
    this.tell(`process ${pid}`);
  }

  forgetProcess(pid: number): void {
    this.tell(`forget ${pid}`);
  }

  watchDirectory(dir: string): void {
    this.tell(`directory ${dir}`);
  }

  /** Ends the shell; the next thing to watch starts another. */
  async dismiss(): Promise<void> {
    const shell = this.shell;
    if (!shell) return;
    this.shell = undefined;
    shell.ref();
    await new Promise<void>((resolve) => {
      shell.once('exit', () => resolve());
      shell.stdin.end();
    });
  }

  private tell(line: string): void {
    this.shell ??= startShell();
    this.shell.stdin.write(`${line}\n`);
  }
}

function startShell(): ChildProcess & { stdin: Writable } {
  // Detached: a Ctrl-C in the terminal is meant for the tests, and must leave this one to clean up.
  const shell = spawn('/bin/sh', ['-c', SCRIPT], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  shell.unref();
  (shell.stdin as Writable & { unref?: () => void }).unref?.();
  return shell;
}
