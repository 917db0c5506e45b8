// Finds or fetches the programs that npm does not bring, and prints where they are.
import { main } from './support/step.mjs';
import { ensureLuacheck, ensureRedisServer } from './support/tools.mjs';

await main(() => {
  console.log(`redis-server: ${ensureRedisServer()}`);
  console.log(`luacheck: ${ensureLuacheck()}`);
});
