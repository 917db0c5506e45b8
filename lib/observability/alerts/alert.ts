import { createHash } from 'node:crypto';
import { apart, figure, lastText, percent } from '../figures.js';
import { type Severity } from './alert-options.js';
import { type AlertState } from './evaluate.js';
import { type StateRuleName } from './rule-names.js';
import { isHeld, type Rule } from './rules.js';

/** Names of policies, apps and resources come from code and configuration, and yet nothing but text may be told. */
const LONGEST_NAME = 128;
const FINGERPRINT = 16;

export const plain = (text: string): string =>
  text.slice(0, LONGEST_NAME).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '·');

/** One thing that is told. */
export interface Alert {
  /** `qpsRise`, `degraded.level3`, `storeAway`… */
  readonly rule: string;
  /** `total`, `store`, `app:…`, `policy:…`, `resource:…` or `node:…`. */
  readonly series: string;
  readonly state: 'pending' | 'firing' | 'resolved';
  readonly severity: Severity;
  /** One sentence. */
  readonly text: string;
  readonly value: number;
  readonly threshold: number;
  /** Of `peak`: the trend reaches the limit, whatever the value is. */
  readonly isTrend?: boolean;
  /** Wall-clock milliseconds of the beginning of the alert; of `pending`, of its first sign. */
  readonly sinceMs: number;
  /** Only of one that is over. */
  readonly endedMs?: number;
  /** Why it is over, if not because its cause is gone. */
  readonly reason?: 'new usual' | 'rule removed';
  /** Looked at, but not told. */
  readonly muted: boolean;
  /** The same for one rule and series of a cluster, from whichever process it comes. */
  readonly fingerprint: string;
  /** The process that tells. */
  readonly nodeId: string;
  /** The cluster, or the service if there is no cluster. */
  readonly cluster: string;
}

export interface AlertOrigin {
  readonly nodeId: string;
  readonly cluster: string;
}

export function fingerprintOf(rule: string, series: string, cluster: string): string {
  const text = JSON.stringify([rule, series, cluster]);
  return createHash('sha256').update(text).digest('hex').slice(0, FINGERPRINT);
}

/** Equal for what is told twice, and for nothing else. */
export const keyOf = ({ fingerprint, state, sinceMs }: Alert): string =>
  `${fingerprint}-${state}-${sinceMs}`;

/** While it is so, and when it was. */
const STATE_TEXTS: Readonly<Record<StateRuleName, readonly [now: string, then: string]>> = {
  storeAway: [
    'Redis does not answer; processes decide by themselves',
    'Redis did not answer; processes decided by themselves',
  ],
  overload: [
    'all apps together ask for about all of the capacity or more',
    'all apps together asked for about all of the capacity or more',
  ],
  line: [
    'requests stand in line before the application',
    'requests stood in line before the application',
  ],
  nodeSilent: [
    'says nothing, and did not say that it leaves',
    'said nothing, and had not said that it leaves',
  ],
  configBehind: [
    'not all nodes are on the latest revision of the configuration',
    'not all nodes were on the latest revision of the configuration',
  ],
  breakerOpen: ['the breaker is open', 'the breaker was open'],
  levelHeld: ['answers are of level 3 or 4', 'answers were of level 3 or 4'],
  relapse: ['falls back again and again', 'fell back again and again'],
};

/** The alert in one sentence. */
export function sentenceOf(
  rule: Rule,
  series: string,
  { phase, value, threshold, reason, limit, isTrend }: AlertState,
): string {
  const name = plain(series);
  if (phase === 'resolved') return `${name}: ${rule.id} is over${reason ? ` (${reason})` : ''}`;
  // An alert lasts for a while after its cause is gone.
  if (isHeld(rule)) {
    const [now, then] = STATE_TEXTS[rule.name];
    return `${name}: ${value < threshold ? `over: ${then}` : now}`;
  }
  const above = value > threshold ? 'above' : 'no longer above';
  const last = lastText(rule.windowMs);
  const [part, most] = apart(percent, value, threshold);
  switch (rule.name) {
    case 'qpsRise': {
      const [now, usual] = apart(figure, value, threshold);
      return `${name}: ${now} requests a second ${last}, ${above} ${usual}`;
    }
    case 'p99Rise': {
      const [now, usual] = apart(figure, value / 1000, threshold / 1000);
      return `${name}: p99 was ${now} ms ${last}, ${above} ${usual} ms`;
    }
    case 'errorRate':
      // The value is the lesser part of two times: of which of them is not known.
      if (value < threshold) {
        return `${name}: errors fell below ${most} of the requests, ${last} or ${lastText(rule.longWindowMs)}`;
      }
      return `${name}: at least ${part} of the requests failed ${last}, and ${lastText(rule.longWindowMs)}, ${above} ${most}`;
    case 'denialRise':
      return `${name}: ${part} of the requests were denied ${last}, ${above} ${most}`;
    case 'slowCalls':
      return `${name}: ${part} of the calls were slow ${last}, ${above} ${most}`;
    case 'degraded':
      return `${name}: ${part} of the answers were of level ${rule.level} ${last}, ${above} ${most}`;
    case 'peak': {
      const whole = series === 'total' ? 'the capacity' : 'its ceiling';
      const of = limit === undefined ? whole : `${whole} of ${figure(limit)}/s`;
      if (value < threshold && isTrend) {
        return `${name}: the trend reaches ${of} within ${Math.round(rule.horizonMs / DAY_MS)} days`;
      }
      const over = value < threshold ? `, no longer ${most}` : '';
      return `${name}: the busiest minute ${last} used ${part} of ${of}${over}`;
    }
  }
}

const DAY_MS = 86_400_000;
