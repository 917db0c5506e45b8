#!/usr/bin/env node
import { runCommand } from '../dist/cli.js';

process.exitCode = await runCommand(process.argv.slice(2), {
  log: (text) => process.stdout.write(`${text}\n`),
  error: (text) => process.stderr.write(`${text}\n`),
});
