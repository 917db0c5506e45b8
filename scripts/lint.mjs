// All style checks. Each one runs, so that one run shows everything there is to correct.
import { run, runNode } from './support/run.mjs';
import { StepError, main, mustPass, step } from './support/step.mjs';
import { ensureLuacheck } from './support/tools.mjs';

const checks = {
  oxlint: () =>
    runNode([
      'node_modules/oxlint/bin/oxlint',
      '--deny-warnings',
      '--report-unused-disable-directives',
      '.',
    ]),
  oxfmt: () => runNode(['node_modules/oxfmt/bin/oxfmt', '--check', '.']),
  luacheck: () => run(ensureLuacheck(), ['--no-color', 'lua']),
  'clean-lock': () => runNode(['scripts/clean-lock.mjs', '--check']),
};

await main(async () => {
  const results = await Promise.allSettled(
    Object.entries(checks).map(([name, check]) => step(name, async () => mustPass(await check()))),
  );
  const failures = results.filter(({ status }) => status === 'rejected');
  const unexpected = failures.find(({ reason }) => !(reason instanceof StepError));
  if (unexpected) throw unexpected.reason;
  if (failures.length > 0) {
    throw new StepError(failures.map(({ reason }) => reason.message).join('\n\n'));
  }
});
