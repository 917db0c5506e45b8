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
  const needsServer = onRedis(sample, args) && !process.env.REDIS_URL;
  const env = needsServer ? { REDIS_SERVER_BIN: ensureRedisServer() } : {};
  const entry = `build/sample/${sample}/main.js`;
  const { code } = await runNode(['--enable-source-maps', entry, ...args], { inherit: true, env });
  return code;
});
