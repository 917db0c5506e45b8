const { default: Sequencer } = require('@jest/test-sequencer');

/** Specs that take longest, longest first: one of them begun last would leave the other workers idle. */
const LONGEST = [
  'cli/simulator/any-quota',
  'cli/simulator/histories',
  'transports/long-questions',
  'cli/simulator/scenarios',
  'e2e/every-transport',
  'package/pack',
  'differential/lua-and-memory-agree',
  'package/readme',
  'algorithms/quota/caps',
  'algorithms/quota/priority',
];

const rank = ({ path }) => {
  const at = LONGEST.findIndex((name) => path.endsWith(`/${name}.spec.ts`));
  return at < 0 ? LONGEST.length : at;
};

module.exports = class LongestFirst extends Sequencer {
  async sort(tests) {
    const usual = await super.sort(tests);
    return [...usual].sort((a, b) => rank(a) - rank(b));
  }
};
