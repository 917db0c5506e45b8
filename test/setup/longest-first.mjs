import { BaseSequencer } from 'vitest/node';

/** Specs that take longest, longest first: one of them begun last would leave the other workers idle. */
const LONGEST = [
  'sample/tour',
  'package/pack',
  'transports/long-requests',
  'cli/simulator/any-quota',
  'transports/grpc',
  'dashboard/dashboard-page',
  'e2e/every-transport',
  'differential/quota-lua-and-memory-agree',
  'differential/lua-and-memory-agree',
  'sample/product-page',
  'cli/simulator/histories',
  'package/pages',
  'sample/flash-sale',
  'observability/prometheus-rules',
  'chaos/shares',
  'chaos/loss-of-state',
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
