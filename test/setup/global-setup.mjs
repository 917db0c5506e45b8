import { ensureRedisServer } from '../../scripts/support/tools.mjs';

/** Workers inherit the environment: a run that was started by hand gets a server as well. */
export default function globalSetup() {
  process.env.REDIS_SERVER_BIN = ensureRedisServer();
}
