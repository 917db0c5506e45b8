#!/usr/bin/env node
import { runCommand } from '../dist/cli/run-command.js';

process.exitCode = await runCommand(process.argv.slice(2), {
  log: (text) => process.stdout.write(`${text}\n`),
  error: (text) => process.stderr.write(`${text}\n`),
});
