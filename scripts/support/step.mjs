/** A failure whose message says all there is to say; no stack is printed for it. */
export class StepError extends Error {
  constructor(message, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

export const seconds = (sinceMs) => `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`;

/** Runs one named step and prints how long it took. What `work` returns is passed on. */
export async function step(name, work) {
  const startedMs = performance.now();
  try {
    const result = await work();
    console.log(`✓ ${name} (${seconds(startedMs)})`);
    return result;
  } catch (error) {
    console.error(`✗ ${name} (${seconds(startedMs)})`);
    throw error;
  }
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
