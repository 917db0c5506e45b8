import { type Suite } from '../support/suite.js';
import { config } from './config.js';
import { dashboard } from './dashboard.js';
import { degradation } from './degradation.js';
import { footprint } from './footprint.js';
import { guard } from './guard.js';
import { http } from './http.js';
import { memory } from './memory.js';
import { monitor } from './monitor.js';
import { overload } from './overload.js';
import { outage } from './outage.js';
import { protection } from './protection.js';
import { quota } from './quota.js';
import { redis } from './redis.js';

/** Every suite, in the order in which they run. A new one is a file beside this and a line here. */
export const suites: readonly Suite[] = [
  ...[memory, footprint, redis, quota, guard, http],
  ...[config, protection, degradation, monitor, dashboard, outage, overload],
];
