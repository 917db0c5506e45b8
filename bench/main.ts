import { CONTENDER_FLAG } from './support/contender-process.js';

// Loaded late: the process of a contender must not carry the suites and all that they import.
if (process.argv.includes(CONTENDER_FLAG)) {
  const { runContenderProcess } = await import('./support/contender-main.js');
  runContenderProcess();
} else {
  const { runCommand } = await import('./command.js');
  process.exitCode = await runCommand(process.argv.slice(2));
}
