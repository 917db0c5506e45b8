#!/usr/bin/env node
import command from '../dist-cjs/cli.js';

process.exitCode = await command.runCommand(process.argv.slice(2), {
  log: (text) => process.stdout.write(`${text}\n`),
  error: (text) => process.stderr.write(`${text}\n`),
});
