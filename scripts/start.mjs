// Runs a sample against the library as it is built: the first one, or the one that is named.
import { readdirSync } from 'node:fs';
import { ensureRunnables } from './support/compile.mjs';
import { ensureInstall } from './support/install.mjs';
import { inRoot } from './support/root.mjs';
import { runNode } from './support/run.mjs';
import { main, StepError } from './support/step.mjs';
import { ensureRedisServer } from './support/tools.mjs';

const samples = readdirSync(inRoot('sample')).filter((name) => /^\d\d-/.test(name));
/** Samples that need a server which npm does not bring, and one that has less to show without it. */
const onRedis = ['05-hierarchy'];
const betterOnRedis = ['00-tour'];

await main(async () => {
  const [first, ...rest] = process.argv.slice(2);
  const isNamed = first !== undefined && /^\d\d-/.test(first);
  const sample = isNamed ? first : samples[0];
  if (!samples.includes(sample)) {
    throw new StepError(`no sample ${sample}: there are ${samples.join(', ')}`);
  }
  const args = isNamed ? rest : process.argv.slice(2);
  await ensureInstall();
  await ensureRunnables();
  const env = process.env.REDIS_URL ? {} : redisFor(sample);
  const entry = `build/sample/${sample}/main.js`;
  const { code } = await runNode(['--enable-source-maps', entry, ...args], { inherit: true, env });
  return code;
});

function redisFor(sample) {
  if (onRedis.includes(sample)) return { REDIS_SERVER_BIN: ensureRedisServer() };
  if (!betterOnRedis.includes(sample)) return {};
  try {
    return { REDIS_SERVER_BIN: ensureRedisServer() };
  } catch (error) {
    if (!(error instanceof StepError)) throw error;
    return {};
  }
}
