/** The ways to count by themselves: no clock, no store, no Nest. */
export {
  LeakyBucket,
  SlidingWindow,
  TokenBucket,
  type BucketOptions,
  type BucketOutcome,
  type LeakyBucketOptions,
  type SlidingWindowOptions,
  type Bucket,
} from './algorithms/buckets.js';
export { type Duration } from './common/duration.js';
