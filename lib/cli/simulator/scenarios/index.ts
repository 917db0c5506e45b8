import { CHURN } from './churn.js';
import { HALVED } from './halved.js';
import { LOCAL_CURVE } from './local-curve.js';
import { OUTAGE, REFUSAL } from './outage.js';
import { PRIORITY } from './priority.js';
import { SCALE } from './scale.js';
import { type Scenario } from './scenario.js';
import { BURST, HOTSPOT, LOW_LIMIT, SKEW, SKEW_OVERLOAD, SURGE } from './steady.js';
import {
  CLOCK_BACK,
  CLOCK_FORWARD,
  FAILOVER,
  PROMOTION,
  UNNOTICED_PROMOTION,
} from './store-faults.js';

export const SCENARIOS: readonly Scenario[] = [
  SKEW,
  SKEW_OVERLOAD,
  HOTSPOT,
  BURST,
  SURGE,
  CHURN,
  LOW_LIMIT,
  SCALE,
  LOCAL_CURVE,
  PRIORITY,
  OUTAGE,
  REFUSAL,
  HALVED,
  CLOCK_FORWARD,
  CLOCK_BACK,
  FAILOVER,
  PROMOTION,
  UNNOTICED_PROMOTION,
];
