import { type Contender } from '../engine/contender.js';
import { CALL_PER_REQUEST } from './call-per-request.js';
import { FIXED_SPLIT } from './fixed-split.js';
import { PLAIN_LEASE } from './plain-lease.js';

/** What else one could do. */
export const BASELINES: readonly Contender[] = [CALL_PER_REQUEST, FIXED_SPLIT, PLAIN_LEASE];
