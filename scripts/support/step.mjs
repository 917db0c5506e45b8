/** A failure whose message says all there is to say; no stack is printed for it. */
export class StepError extends Error {
  constructor(message, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

export const seconds = (sinceMs) => `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`;

/** Names of the steps that are under way, and since when. */
const underWay = new Map();

/**
 * Runs one named step and prints how long it took; what `work` returns is passed on. Until then a terminal
 * shows what is being done and for how long, unless the step has output of its own (`speaks`).
 */
export async function step(name, work, { speaks = false } = {}) {
  const startedMs = performance.now();
  const end = speaks ? () => undefined : showProgress(name, startedMs);
  try {
    const result = await work();
    end();
    console.log(`✓ ${name} (${seconds(startedMs)})`);
    return result;
  } catch (error) {
    end();
    console.error(`✗ ${name} (${seconds(startedMs)})`);
    throw error;
  }
}

/** One line that counts the seconds, or where there is no terminal one line and no more. */
function showProgress(name, startedMs) {
  if (!process.stdout.isTTY) {
    console.log(`… ${name}`);
    return () => undefined;
  }
  const ERASE = '\r\u001b[K';
  const show = () => {
    const parts = [...underWay].map(([one, sinceMs]) => `${one} ${seconds(sinceMs)}`);
    process.stdout.write(`${ERASE}… ${parts.join(', ')}`);
  };
  underWay.set(name, startedMs);
  show();
  const timer = setInterval(show, 200);
  return () => {
    clearInterval(timer);
    underWay.delete(name);
    process.stdout.write(ERASE);
  };
}

/** Turns a captured run that failed into a StepError that shows its output. */
export function mustPass({ code, output }) {
  if (code !== 0) throw new StepError(output.trim() || `exit code ${code}`, code);
  return output;
}

/** Entry point of every script: one line for a known failure, a stack only for a bug. */
export async function main(work) {
  try {
    process.exitCode = (await work()) ?? 0;
  } catch (error) {
    console.error(error instanceof StepError ? error.message : error);
    process.exitCode = error.exitCode || 1;
  }
}
