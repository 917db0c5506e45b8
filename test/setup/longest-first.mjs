import { BaseSequencer } from 'vitest/node';

/** Specs that take longest, longest first: one of them begun last would leave the other workers idle. */
const LONGEST = [
  'cli/simulator/any-quota',
  'cli/simulator/histories',
  'transports/long-questions',
  'cli/simulator/scenarios',
  'e2e/every-transport',
  'package/pack',
  'differential/lua-and-memory-agree',
  'package/pages',
  'algorithms/quota/caps',
  'algorithms/quota/priority',
];

const rank = ({ moduleId }) => {
  const at = LONGEST.findIndex((name) => moduleId.endsWith(`/${name}.spec.ts`));
  return at < 0 ? LONGEST.length : at;
};

export class LongestFirst extends BaseSequencer {
  async sort(specs) {
    const usual = await super.sort(specs);
    return [...usual].sort((a, b) => rank(a) - rank(b));
  }
}
