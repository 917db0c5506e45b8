import { between, duration, field, flag, group, ratio, whole } from './fields.js';

const enabled = field(flag(), 'Whether it is looked at', true);
const fold = () => between(1, 1000);

const secondsSchema = group({
  qpsRise: field(
    group({
      enabled,
      factor: field(fold(), 'Fires above so many times the usual rate', 1.5),
      window: field(duration(), 'The time whose rate is compared', '10s'),
      baseline: field(duration(), 'The time that says what is usual', '5m'),
      minRate: field(whole(), 'Requests per second below which nothing fires', 20),
      evaluations: field(whole(1, 1000), 'How often in a row it must hold', 3),
    }),
    'Requests per second rise suddenly',
  ),
  errorRate: field(
    group({
      enabled,
      above: field(ratio(), 'Fires above this part of the requests', 0.01),
      window: field(duration(), 'In this time…', '1m'),
      longWindow: field(duration(), '…and in this', '5m'),
      minRequests: field(whole(), 'Requests below which nothing fires', 100),
    }),
    'Requests fail',
  ),
});

const minutesSchema = group({
  p99Rise: field(
    group({
      enabled,
      factor: field(fold(), 'Fires above so many times the usual p99', 1.5),
      window: field(duration(), 'The time whose p99 is compared', '5m'),
      baseline: field(duration(), 'The time that says what is usual', '1h'),
      above: field(duration(), 'A p99 below this is never slow', '50ms'),
      minRequests: field(whole(), 'Requests below which nothing fires', 200),
    }),
    'The slowest hundredth gets slower',
  ),
  denialRise: field(
    group({
      enabled,
      above: field(ratio(), 'Fires above this part of the requests…', 0.05),
      factor: field(fold(), '…if it is also above so many times the usual part', 2),
      window: field(duration(), 'The time that is compared', '1m'),
      baseline: field(duration(), 'The time that says what is usual', '15m'),
      minRequests: field(whole(), 'Requests below which nothing fires', 50),
    }),
    'More and more requests are denied',
  ),
  degraded: field(
    group({
      enabled,
      level1: field(ratio(), 'Fires above this part of answers of level 1', 0.05),
      level2: field(ratio(), 'Of level 2', 0.01),
      level3: field(ratio(), 'Of level 3', 0.001),
      level4: field(ratio(), 'Of level 4', 0.0001),
    }),
    'More answers are degraded than users should see',
  ),
});

const hoursSchema = group({
  peak: field(
    group({
      enabled,
      above: field(ratio(), 'Fires when the busiest minute used this part of the capacity', 0.8),
      window: field(duration(), 'The time that it looks back on', '24h'),
      horizon: field(duration(), 'Also fires if the trend reaches the capacity within', '14d'),
    }),
    'The peak comes near the capacity',
  ),
});

export const alertsSchema = group({
  enabled: field(flag(), 'Whether there are alerts', true),
  hold: field(duration(), 'How long an alert goes on after its cause is gone', '60s'),
  resolveAt: field(ratio(), 'The cause is gone below this part of what fired it', 0.8),
  seconds: field(secondsSchema, 'What is seen at once'),
  minutes: field(minutesSchema, 'What is seen in minutes'),
  hours: field(hoursSchema, 'What is seen in hours and days'),
});
