import { type Algorithm } from './algorithm.js';
import { leakyBucket } from './leaky-bucket.js';
import { AlgorithmCode } from './limit.js';
import { slidingWindow } from './sliding-window.js';
import { tokenBucket } from './token-bucket.js';

export function algorithmOf(code: AlgorithmCode): Algorithm {
  switch (code) {
    case AlgorithmCode.TokenBucket:
      return tokenBucket;
    case AlgorithmCode.LeakyPolicer:
    case AlgorithmCode.LeakyShaper:
      return leakyBucket;
    case AlgorithmCode.SlidingWindow:
      return slidingWindow;
  }
}
