import { type Contender } from '../engine/contender.js';
import { capacityOf, depthOf } from '../measure/figures.js';
import { IdealBucket } from '../measure/ideal-bucket.js';

/** Each node by itself, with an even part of capacity and burst, as planned beforehand. */
export const FIXED_SPLIT: Contender = {
  name: 'fixed split',
  start: ({ quota, time, plannedNodes }) => {
    const { figures } = quota;
    const rate = capacityOf(figures) / plannedNodes;
    const depth = Math.max(figures.maxCost, depthOf(figures) / plannedNodes);
    return () => {
      const bucket = new IdealBucket(rate, depth);
      return {
        request: (_, cost) => bucket.take(cost, time.seconds()),
        leave: () => Promise.resolve(),
      };
    };
  },
};
