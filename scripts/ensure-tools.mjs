// Finds or fetches the programs that npm does not bring, and prints where they are.
// With the argument `brokers`, only the brokers and the database, as the JSON of environment variables.
import { basename } from 'node:path';
import { ensureBrokers } from './support/brokers.mjs';
import { main } from './support/step.mjs';
import {
  ensureChromium,
  ensureLuacheck,
  ensurePromtool,
  ensureRedisServer,
} from './support/tools.mjs';

await main(() => {
  const brokers = ensureBrokers();
  if (process.argv[2] === 'brokers') return console.log(JSON.stringify(brokers));
  console.log(`redis-server: ${ensureRedisServer()}`);
  console.log(`luacheck: ${ensureLuacheck()}`);
  console.log(`promtool: ${ensurePromtool()}`);
  console.log(`chromium: ${ensureChromium()}`);
  for (const program of Object.values(brokers)) console.log(`${basename(program)}: ${program}`);
});
