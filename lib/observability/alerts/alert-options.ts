import { type Duration } from '../../common/duration.js';

export const SEVERITIES = ['info', 'warning', 'critical'] as const;
/** How much an alert matters. */
export type Severity = (typeof SEVERITIES)[number];

/** Requests per second rise suddenly. The initial values of this class and the next ones are the defaults. */
export class QpsRiseOptions {
  enabled = true;
  severity: Severity = 'info';
  /** Fires above so many times the usual rate. */
  factor = 1.5;
  window: Duration = '10s';
  /** The time before it, which says what is usual. */
  baseline: Duration = '5m';
  /** Requests per second; whatever is usual counts as at least this. */
  minRate = 20;
  /** How often in a row it must hold. */
  evaluations = 3;
  /** A rise that lasts so long is the usual from then on. */
  newUsualAfter: Duration = '30m';
}

/** Requests fail. */
export class ErrorRateOptions {
  enabled = true;
  severity: Severity = 'critical';
  /** Fires above this part of the requests, in both windows. */
  above = 0.01;
  window: Duration = '1m';
  longWindow: Duration = '5m';
  /** In the shorter window. */
  minRequests = 100;
}

/** The slowest hundredth gets slower. */
export class P99RiseOptions {
  enabled = true;
  severity: Severity = 'warning';
  /** Fires above so many times the usual p99. */
  factor = 1.5;
  window: Duration = '5m';
  baseline: Duration = '1h';
  /** A p99 up to this is never slow. */
  above: Duration = '50ms';
  minRequests = 200;
}

/** More and more requests are denied. */
export class DenialRiseOptions {
  enabled = true;
  severity: Severity = 'warning';
  /** Fires above this part of the requests… */
  above = 0.05;
  /** …if it is also above so many times the usual part. */
  factor = 2;
  window: Duration = '1m';
  baseline: Duration = '15m';
  minRequests = 50;
}

/** Calls of a protected resource take too long. */
export class SlowCallsOptions {
  enabled = true;
  severity: Severity = 'warning';
  /** Fires above this part of the calls that were made. */
  above = 0.1;
  window: Duration = '1m';
  /** Slow ones. */
  minCalls = 10;
}

/** More answers are degraded than users should see. */
export class DegradedOptions {
  enabled = true;
  /** Of all levels. Default: info for 1 and 2, warning for 3, critical for 4. */
  severity?: Severity;
  level1 = 0.05;
  level2 = 0.01;
  level3 = 0.001;
  level4 = 0.0001;
  window: Duration = '5m';
  /** Of that level. */
  minAnswers = 10;
}

/** The peak comes near the capacity. */
export class PeakOptions {
  enabled = true;
  severity: Severity = 'warning';
  /** Fires from this part of the capacity on. */
  above = 0.8;
  /** The time that it looks back on. */
  window: Duration = '24h';
  /** Also fires if the trend reaches the capacity within this time. */
  horizon: Duration = '14d';
}

/** A state that should not last: fires once it has held so long. */
export class HeldOptions {
  enabled = true;

  constructor(
    readonly severity: Severity,
    readonly after: Duration,
  ) {}
}

/** A resource that recovered falls back again and again. */
export class RelapseOptions {
  enabled = true;
  severity: Severity = 'warning';
  times = 3;
  window: Duration = '1h';
}

export class SecondsOptions {
  qpsRise = new QpsRiseOptions();
  errorRate = new ErrorRateOptions();
}

export class MinutesOptions {
  p99Rise = new P99RiseOptions();
  denialRise = new DenialRiseOptions();
  slowCalls = new SlowCallsOptions();
  degraded = new DegradedOptions();
}

export class HoursOptions {
  peak = new PeakOptions();
}

export class StatesOptions {
  storeAway = new HeldOptions('critical', '10s');
  overload = new HeldOptions('warning', '60s');
  line = new HeldOptions('warning', '60s');
  nodeSilent = new HeldOptions('warning', '10s');
  configBehind = new HeldOptions('warning', '60s');
  breakerOpen = new HeldOptions('warning', '30s');
  levelHeld = new HeldOptions('critical', '5m');
  relapse = new RelapseOptions();
}

/** The options of alerts. The initial values are the defaults. */
export class AlertsOptions {
  enabled = true;
  /** How long the cause must be gone before an alert is over. */
  hold: Duration = '60s';
  /** The cause is gone below this part of what fired. */
  resolveAt = 0.8;
  seconds = new SecondsOptions();
  minutes = new MinutesOptions();
  hours = new HoursOptions();
  states = new StatesOptions();
}
