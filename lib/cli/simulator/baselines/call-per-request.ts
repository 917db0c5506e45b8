import { type Contender } from '../engine/contender.js';
import { capacityOf, depthOf } from '../measure/figures.js';
import { IdealBucket } from '../measure/ideal-bucket.js';

/** One bucket in the store, asked for every request. While the store is away nothing passes. */
export const CALL_PER_REQUEST: Contender = {
  name: 'call per request',
  start: ({ quota, time }) => {
    const bucket = new IdealBucket(capacityOf(quota.figures), depthOf(quota.figures));
    return (host) => ({
      request: (_, cost) => host.ask(() => bucket.take(cost, time.seconds())).catch(() => false),
      leave: () => Promise.resolve(),
    });
  },
};
