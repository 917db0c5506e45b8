#!/usr/bin/env node
import command from '../dist-cjs/cli.js';

// Whoever reads may have had enough, as `head` has after some lines.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });
}

process.exitCode = await command.runCommand(process.argv.slice(2), {
  log: (text) => process.stdout.write(`${text}\n`),
  error: (text) => process.stderr.write(`${text}\n`),
});
