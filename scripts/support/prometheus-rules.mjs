// The default rules of alerts as rules for Prometheus, as far as PromQL can say them.

/** What PromQL cannot say, or says otherwise. */
const DIFFERENCES = [
  'qpsRise looks at 1 min instead of 10 s, which is less than two scrapes; after a start it waits for all of its baseline; a new level is the usual one as soon as the baseline has it.',
  'What is usual goes on to be measured while an alert fires, and of p99Rise and denialRise, after a start, a short time counts as much as a long one.',
  'An alert is over once its expression was false for hold; there is no 0.8 of the threshold in between.',
  'slowCalls is not there: what is slow is set for each resource. peak is not: it looks at a week. nodeSilent is not: what is not scraped is `up == 0`. Neither are new usual and mute.',
  'All requests of a job are one series; only breakers and falls are by resource.',
];

/** Less than this is less than two scrapes. */
const LEAST_WINDOW_S = 60;

/** @param rules those of the library @param families its metrics, of which rules are made only if they are there */
export function prometheusRules(rules, families) {
  const known = new Set(
    families.flatMap(({ name, kind }) =>
      kind === 'histogram' ? [`${name}_bucket`, `${name}_count`] : [name],
    ),
  );
  const made = rules.flatMap((rule) => {
    const found = EXPRESSIONS[rule.name]?.(rule);
    if (found === undefined) return [];
    const foreign = found.expr.match(/weir_\w+/g).find((name) => !known.has(name));
    if (foreign !== undefined)
      throw new Error(`${rule.id} asks for ${foreign}, which is no metric`);
    return [{ rule, ...found }];
  });
  const head = [
    '# The default rules of alerts of nestjs-weir, for Prometheus 2.42 and later. Made by `npm run ops-files`.',
    '# Unlike the alerts of the library itself:',
    ...DIFFERENCES.map((line) => `# - ${line}`),
    'groups:',
    '  - name: weir',
    '    rules:',
  ];
  return `${[...head, ...made.flatMap(linesOf)].join('\n')}\n`;
}

export const alertName = (id) =>
  `Weir${id.replace(/(^|\.)(\w)/g, (_, __, first) => first.toUpperCase())}`;

function linesOf({ rule, expr, forMs = 0, says }) {
  return [
    `      - alert: ${alertName(rule.id)}`,
    '        expr: |',
    ...expr.split('\n').map((line) => `          ${line}`),
    ...(forMs > 0 ? [`        for: ${seconds(forMs)}`] : []),
    `        keep_firing_for: ${seconds(rule.holdMs)}`,
    '        labels:',
    `          severity: ${rule.severity}`,
    '        annotations:',
    `          summary: '${says}'`,
  ];
}

const seconds = (ms) => `${Math.round(ms / 1000)}s`;
const sum = (of) => `sum by (job) (${of})`;
const requests = (window, more = '') => sum(`rate(weir_requests_total[${window}]${more})`);
const denied = (window, more = '') =>
  sum(`rate(weir_requests_total{outcome="denied"}[${window}]${more})`);
const errors = (window) => sum(`rate(weir_response_errors_total[${window}])`);
const p99 = (window) =>
  `histogram_quantile(0.99, sum by (job, le) (rate(weir_response_seconds_bucket[${window}])))`;
const all = (...conditions) => conditions.join('\nand ');

const EXPRESSIONS = {
  qpsRise({ factor, baselineMs, minRate, evaluations, everyMs }) {
    const window = `${LEAST_WINDOW_S}s`;
    const usual = requests(seconds(baselineMs), ` offset ${window}`);
    // A rate is by the whole of its range, however little of that has samples: after a start it would be low.
    const before = seconds(baselineMs + LEAST_WINDOW_S * 1000);
    return {
      expr: all(
        `${requests(window)} > ${factor} * clamp_min(${usual}, ${minRate})`,
        sum(`weir_requests_total offset ${before}`),
      ),
      forMs: (evaluations - 1) * everyMs,
      says: '{{ $value | humanize }} requests a second, more than usual',
    };
  },
  errorRate({ above, windowMs, longWindowMs, minRequests }) {
    const [short, long] = [seconds(windowMs), seconds(longWindowMs)];
    return {
      expr: all(
        `${errors(short)} / ${requests(short)} > ${above}`,
        `${errors(long)} / ${requests(long)} > ${above}`,
        `${sum(`increase(weir_requests_total[${short}])`)} >= ${minRequests}`,
      ),
      says: '{{ $value | humanizePercentage }} of the requests fail',
    };
  },
  p99Rise({ factor, windowMs, baselineMs, aboveMs, minRequests }) {
    const window = seconds(windowMs);
    const usual = `quantile_over_time(0.5, ${p99('1m')}[${seconds(baselineMs)}:1m] offset ${window})`;
    return {
      expr: all(
        `${p99(window)} > ${aboveMs / 1000}`,
        `${p99(window)} > ${factor} * ${usual}`,
        `${sum(`increase(weir_response_seconds_count[${window}])`)} >= ${minRequests}`,
      ),
      says: 'p99 is {{ $value | humanizeDuration }}, more than usual',
    };
  },
  denialRise({ above, factor, windowMs, baselineMs, minRequests }) {
    const [window, baseline] = [seconds(windowMs), seconds(baselineMs)];
    const before = ` offset ${window}`;
    const part = `${denied(window)} / ${requests(window)}`;
    return {
      expr: all(
        `${part} > ${above}`,
        `${part} > ${factor} * (${denied(baseline, before)} / ${requests(baseline, before)})`,
        `${sum(`increase(weir_requests_total[${window}])`)} >= ${minRequests}`,
      ),
      says: '{{ $value | humanizePercentage }} of the requests are denied',
    };
  },
  degraded({ level, above, windowMs, minAnswers }) {
    const answers = `weir_degraded_answers_total{level="${level}"}[${seconds(windowMs)}]`;
    return {
      expr: all(
        `${sum(`rate(${answers})`)} / ${requests(seconds(windowMs))} > ${above}`,
        `${sum(`increase(${answers})`)} >= ${minAnswers}`,
      ),
      says: `{{ $value | humanizePercentage }} of the answers are of level ${level}`,
    };
  },
  storeAway: ({ afterMs }) => ({
    expr: 'min by (job) (weir_store_up) == 0',
    forMs: afterMs,
    says: 'Redis does not answer; processes decide by themselves',
  }),
  line: ({ afterMs }) => ({
    expr: 'max by (job) (weir_overload_standing) == 1',
    forMs: afterMs,
    says: 'requests stand in line before the application',
  }),
  overload: ({ afterMs }) => ({
    expr: 'max by (job) (weir_cluster_overloaded) == 1',
    forMs: afterMs,
    says: 'all apps together ask for about all of the capacity or more',
  }),
  configBehind: ({ afterMs }) => ({
    expr: 'max by (job) (weir_config_nodes_behind) > 0',
    forMs: afterMs,
    says: '{{ $value | humanize }} nodes are not on the latest revision of the configuration',
  }),
  // Over both states: by one of them alone, a breaker that tries again would begin anew.
  breakerOpen: ({ afterMs }) => ({
    expr: 'max by (job, resource) (weir_breaker_state{state=~"open|half_open"}) == 1',
    forMs: afterMs,
    says: 'the breaker of {{ $labels.resource }} is open',
  }),
  levelHeld: ({ afterMs }) => ({
    expr: 'sum by (job) (increase(weir_degraded_answers_total{level=~"3|4"}[60s])) > 0',
    forMs: afterMs,
    says: 'answers are of level 3 or 4',
  }),
  // An increase is a little less than the count where the first fall made the series.
  relapse: ({ times, windowMs }) => ({
    expr: `max by (job, resource) (sum by (job, instance, resource) (increase(weir_recovery_trips_total[${seconds(windowMs)}]))) > ${times - 0.5}`,
    says: '{{ $labels.resource }} falls back again and again',
  }),
};
