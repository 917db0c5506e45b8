import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Reaper } from './reaper.js';

// Everything that the helpers of this directory start is written down here, so that it can be
// ended by whoever started it, and by nobody else.

const children = new Set<ChildProcess>();
const directories = new Set<string>();
const closers = new Set<() => Promise<void>>();
const reaper = new Reaper();

/** Starts a child process that ends with this one at the latest. */
export function spawnOwned(
  command: string,
  args: readonly string[],
  options: SpawnOptions = {},
): ChildProcess {
  const child = spawn(command, args, options);
  // A test run or a benchmark that is over must not wait for a server nobody stopped.
  child.unref();
  const { pid } = child;
  if (pid === undefined) return child;
  children.add(child);
  reaper.watchProcess(pid);
  child.once('exit', () => {
    children.delete(child);
    reaper.forgetProcess(pid);
  });
  return child;
}

export const hasExited = (child: ChildProcess): boolean =>
  child.pid === undefined || child.exitCode !== null || child.signalCode !== null;

/** Resolves once the child is gone, at once if it is gone already. */
export function exited(child: ChildProcess): Promise<void> {
  if (hasExited(child)) return Promise.resolve();
  child.ref();
  return new Promise((resolve) => child.once('exit', () => resolve()));
}

export function makeTempDir(parent: string = tmpdir()): string {
  const dir = mkdtempSync(join(parent, 'nestjs-weir-'));
  directories.add(dir);
  reaper.watchDirectory(dir);
  return dir;
}

export function removeTempDir(dir: string): void {
  directories.delete(dir);
  rmSync(dir, { recursive: true, force: true });
}

/** Registers something that lives in this process (a server, a client). Returns its removal. */
export function closeAtEnd(close: () => Promise<void>): () => void {
  closers.add(close);
  return () => closers.delete(close);
}

/** Ends all that was started here. Specs that start something call `afterAll(stopAll)`. */
export async function stopAll(): Promise<void> {
  const closing = [...closers];
  closers.clear();
  await Promise.all(closing.map((close) => close()));
  await Promise.all(
    [...children].map((child) => {
      child.kill('SIGKILL');
      return exited(child);
    }),
  );
  for (const dir of [...directories]) removeTempDir(dir);
  await reaper.dismiss();
}
