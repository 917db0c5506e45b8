import { Named, text, type Passing } from '../../common/schema.js';
import {
  between,
  choice,
  duration,
  field,
  flag,
  group,
  part,
  whole,
} from '../../common/schema-fields.js';
import { AlertsOptions, SEVERITIES, type HeldOptions } from './alert-options.js';
import { RULE_NAMES } from './rule-names.js';

const defaults = new AlertsOptions();
const { qpsRise, errorRate } = defaults.seconds;
const { p99Rise, denialRise, slowCalls, degraded } = defaults.minutes;
const { peak } = defaults.hours;
const { states } = defaults;

const A_PART = 'a number above 0, at most 1';
const MOST_FOLD = 1000;
const MOST_EVALUATIONS = 1000;
const MOST_RELAPSES = 1000;

const enabled = (byDefault: boolean) => field(flag(), 'Whether it is looked at', byDefault);
const severity = (byDefault: string) =>
  field(choice(...SEVERITIES), 'How much it matters', byDefault);
const fold = () => between(1, MOST_FOLD);

const secondsSchema = group({
  qpsRise: field(
    group({
      enabled: enabled(qpsRise.enabled),
      severity: severity(qpsRise.severity),
      factor: field(fold(), 'Fires above so many times the usual rate', qpsRise.factor),
      window: field(duration(), 'The time whose rate is compared: 1 s to 2 min', qpsRise.window),
      baseline: field(duration(), 'The time that says what is usual', qpsRise.baseline),
      minRate: field(
        whole(),
        'Requests per second; what is usual counts as at least this',
        qpsRise.minRate,
      ),
      evaluations: field(
        whole(1, MOST_EVALUATIONS),
        'How often in a row it must hold, once a second',
        qpsRise.evaluations,
      ),
      newUsualAfter: field(
        duration(),
        'A rise that lasts so long is the usual from then on; at least baseline',
        qpsRise.newUsualAfter,
      ),
    }),
    'Requests per second rise suddenly',
  ),
  errorRate: field(
    group({
      enabled: enabled(errorRate.enabled),
      severity: severity(errorRate.severity),
      above: field(part(A_PART), 'Fires above this part of the requests', errorRate.above),
      window: field(duration(), 'In this time…', errorRate.window),
      longWindow: field(duration(), '…and in this, which is longer', errorRate.longWindow),
      minRequests: field(whole(), 'Requests below which nothing fires', errorRate.minRequests),
    }),
    'Requests fail',
  ),
});

const minutesSchema = group({
  p99Rise: field(
    group({
      enabled: enabled(p99Rise.enabled),
      severity: severity(p99Rise.severity),
      factor: field(fold(), 'Fires above so many times the usual p99', p99Rise.factor),
      window: field(duration(), 'The time whose p99 is compared: 1 to 15 min', p99Rise.window),
      baseline: field(duration(), 'The time that says what is usual', p99Rise.baseline),
      above: field(duration(), 'A p99 up to this is never slow', p99Rise.above),
      minRequests: field(whole(), 'Requests below which nothing fires', p99Rise.minRequests),
    }),
    'The slowest hundredth gets slower',
  ),
  denialRise: field(
    group({
      enabled: enabled(denialRise.enabled),
      severity: severity(denialRise.severity),
      above: field(part(A_PART), 'Fires above this part of the requests…', denialRise.above),
      factor: field(fold(), '…if it is also above so many times the usual part', denialRise.factor),
      window: field(duration(), 'The time that is compared', denialRise.window),
      baseline: field(duration(), 'The time that says what is usual', denialRise.baseline),
      minRequests: field(whole(), 'Requests below which nothing fires', denialRise.minRequests),
    }),
    'More and more requests are denied',
  ),
  slowCalls: field(
    group({
      enabled: enabled(slowCalls.enabled),
      severity: severity(slowCalls.severity),
      above: field(part(A_PART), 'Fires above this part of the calls', slowCalls.above),
      window: field(duration(), 'In this time', slowCalls.window),
      minCalls: field(whole(), 'Slow calls below which nothing fires', slowCalls.minCalls),
    }),
    'Calls of a protected resource take too long',
  ),
  degraded: field(
    group({
      enabled: enabled(degraded.enabled),
      severity: field(
        choice(...SEVERITIES),
        'Of all levels; without it info for 1 and 2, warning for 3, critical for 4',
      ),
      level1: field(part(A_PART), 'Fires above this part of answers of level 1', degraded.level1),
      level2: field(part(A_PART), 'Of level 2', degraded.level2),
      level3: field(part(A_PART), 'Of level 3', degraded.level3),
      level4: field(part(A_PART), 'Of level 4', degraded.level4),
      window: field(duration(), 'In this time', degraded.window),
      minAnswers: field(
        whole(),
        'Answers of that level below which nothing fires',
        degraded.minAnswers,
      ),
    }),
    'More answers are degraded than users should see',
  ),
});

const hoursSchema = group({
  peak: field(
    group({
      enabled: enabled(peak.enabled),
      severity: severity(peak.severity),
      above: field(
        part(A_PART),
        'Fires when the busiest minute used this part of the capacity',
        peak.above,
      ),
      window: field(duration(), 'The time that it looks back on: 1 h to 7 days', peak.window),
      horizon: field(
        duration(),
        'Also fires if the trend reaches the capacity within this time',
        peak.horizon,
      ),
    }),
    'The peak comes near the capacity',
  ),
});

const held = (what: string, { enabled: isOn, severity: how, after }: HeldOptions) =>
  field(
    group({
      enabled: enabled(isOn),
      severity: severity(how),
      after: field(duration(), 'Fires once it has held so long', after),
    }),
    what,
  );

const statesSchema = group({
  storeAway: held('Redis does not answer', states.storeAway),
  overload: held(
    'All apps together ask for more than nine tenths of the capacity',
    states.overload,
  ),
  line: held('Requests stand in line before the application', states.line),
  nodeSilent: held(
    'A node of the fleet says nothing, and did not say that it leaves',
    states.nodeSilent,
  ),
  configBehind: held('Nodes of the fleet are not on the latest revision', states.configBehind),
  breakerOpen: held("The breaker of a resource's calls is open or half open", states.breakerOpen),
  levelHeld: held('A resource answers with level 3 or 4', states.levelHeld),
  relapse: field(
    group({
      enabled: enabled(states.relapse.enabled),
      severity: severity(states.relapse.severity),
      times: field(whole(1, MOST_RELAPSES), 'Fires at so many falls…', states.relapse.times),
      window: field(duration(), '…within this time', states.relapse.window),
    }),
    'A resource falls back again and again',
  ),
});

const AN_INSTANT = "an instant like '2026-11-17T14:00:00Z'";
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/;
const isInstant = (value: string): boolean =>
  INSTANT.test(value) && !Number.isNaN(Date.parse(value));
const A_RULE = `one of ${RULE_NAMES.join(', ')}`;
const LONGEST_SERIES = 128;
const A_SERIES = "the name of a series, such as 'total', 'app:checkout' or 'policy:login'";

const muteSchema = new Named(
  'an object of rules by name',
  group({
    series: field(
      text(A_SERIES, { minLength: 1 }, (name) => name !== '' && name.length <= LONGEST_SERIES),
      'Only of this series; without it, of all',
    ),
    until: field(text(AN_INSTANT, {}, isInstant), 'Until then; without it, until it is taken out'),
  }),
  { form: new RegExp(`^(?:${RULE_NAMES.join('|')})$`), expected: A_RULE },
);

/** An alert section, as a document or code has it. */
export type AlertsInput = Passing<typeof alertsSchema>;

/** The section of the document. What it cannot say of fields together, `checkAlerts` says. */
export const alertsSchema = group({
  enabled: field(flag(), 'Whether there are alerts', defaults.enabled),
  hold: field(duration(), 'How long the cause must be gone before an alert is over', defaults.hold),
  resolveAt: field(
    part(A_PART),
    'The cause is gone below this part of what fired',
    defaults.resolveAt,
  ),
  seconds: field(secondsSchema, 'What is seen at once'),
  minutes: field(minutesSchema, 'What is seen in minutes'),
  hours: field(hoursSchema, 'What is seen in hours and days'),
  states: field(statesSchema, 'States that should not last'),
  mute: field(muteSchema, 'Rules that are looked at, but not told'),
});
