import { Buffer } from 'node:buffer';
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { root } from './root.mjs';

const toExitCode = (code, signal) => code ?? 128 + (constants.signals[signal] ?? 0);

/** Runs a command to its end. Resolves to its exit code and, unless `inherit` is set, its output. */
export function run(command, args, { inherit = false, env = {}, cwd = root } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: inherit ? 'inherit' : ['ignore', 'pipe', 'pipe'],
    });
    const output = [];
    child.stdout?.on('data', (chunk) => output.push(chunk));
    child.stderr?.on('data', (chunk) => output.push(chunk));
    const stopForwarding = forwardSignals(child);
    child.once('error', (error) => {
      stopForwarding();
      reject(error);
    });
    child.once('close', (code, signal) => {
      stopForwarding();
      resolve({ code: toExitCode(code, signal), output: Buffer.concat(output).toString() });
    });
  });
}

/** Runs a script of node with this very node. */
export const runNode = (args, options) => run(process.execPath, args, options);

function forwardSignals(child) {
  const onTerm = () => child.kill('SIGTERM');
  // A terminal sends its SIGINT to the whole foreground group: the child has it already, and a
  // second one would cut its shutdown short.
  const onInt = () => process.stdin.isTTY || child.kill('SIGINT');
  process.on('SIGTERM', onTerm);
  process.on('SIGINT', onInt);
  return () => {
    process.off('SIGTERM', onTerm);
    process.off('SIGINT', onInt);
  };
}
