// Runs a sample against the library as it is built: the first one, or the one that is named.
import { readdirSync } from 'node:fs';
import { ensureRunnables } from './support/compile.mjs';
import { ensureInstall } from './support/install.mjs';
import { inRoot } from './support/root.mjs';
import { runNode } from './support/run.mjs';
import { main, StepError } from './support/step.mjs';
import { ensureRedisServer } from './support/tools.mjs';

const samples = readdirSync(inRoot('sample')).filter((name) => /^\d\d-/.test(name));
/** Samples that need a server which npm does not bring; the tour has one of its own unless it is told otherwise. */
const onRedis = (sample, args) =>
  sample === '05-hierarchy' || (sample === '00-tour' && args.includes('--redis'));

const HELP = `npm start                     the tour: a shop of three nodes, with the dashboard
npm start -- --redis          the same in three processes, on a real Redis
npm start -- --open           opens the dashboard in the browser as well
npm start -- NAME [tour]      another sample, which shows by itself what it promises:
                              ${samples.slice(1).join(', ')}
PORT=4000 npm start           at another port`;

/** A server, or one sentence about what else there is. */
function redisServer() {
  try {
    return ensureRedisServer();
  } catch (error) {
    if (!(error instanceof StepError)) throw error;
    const { message } = error;
    throw new StepError(
      `${message}, or set REDIS_URL to a Redis that runs, or take the tour without one: npm start`,
    );
  }
}

// The end of the terminal may be told to this process alone.
process.on('SIGHUP', () => process.kill(process.pid, 'SIGTERM'));

await main(async () => {
  if (process.argv.includes('--help') || process.argv.includes('-h')) {
    console.log(HELP);
    return 0;
  }
  const [first, ...rest] = process.argv.slice(2);
  const isNamed = first !== undefined && /^\d\d-/.test(first);
  const sample = isNamed ? first : samples[0];
  if (!samples.includes(sample)) {
    throw new StepError(`no sample ${sample}: there are ${samples.join(', ')}`);
  }
  const args = isNamed ? rest : process.argv.slice(2);
  await ensureInstall();
  await ensureRunnables();
  const needsServer = onRedis(sample, args) && !process.env.REDIS_URL;
  const env = needsServer ? { REDIS_SERVER_BIN: redisServer() } : {};
  const entry = `build/sample/${sample}/main.js`;
  const { code } = await runNode(['--enable-source-maps', entry, ...args], { inherit: true, env });
  return code;
});
