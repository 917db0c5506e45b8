import { type Series } from '../series.js';
import { type Facts } from '../sources.js';

/** Something comes near its limit, before anybody is denied. */
export interface EarlySignal {
  /** Its subject: a policy, or an app's quota. */
  readonly policy?: string;
  readonly app?: string;
  /** The limit that is near: a policy's own, or the app's `guaranteed` or `burst`. */
  readonly of: 'limit' | 'guaranteed' | 'burst';
  /** Of a policy: decisions of the last minute that left less than a fifth. */
  readonly scarce?: number;
  /** Of an app: tokens per second of the last ten seconds, and those that there are. */
  readonly used?: number;
  readonly limit?: number;
}

const NEAR = 0.8;
const NEAR_SECONDS = 10;
const MINUTE_MICROS = 60_000_000;

/** Tells of each policy and app at most once a minute. */
export class EarlySignals {
  private readonly toldMicros = new Map<string, number>();
  private readonly scarceBefore = new Map<string, number>();

  constructor(private readonly tell: (signal: EarlySignal) => void) {}

  look(facts: Facts, series: readonly Series[], nowMicros: number): void {
    const policies = Object.entries(facts.limiter.policies);
    for (const [policy, { scarce }] of policies) this.lookAtPolicy(policy, scarce, nowMicros);
    const apps = facts.limiter.quota?.apps ?? {};
    for (const { kind, of, seconds } of series) {
      const app = kind === 'app' ? apps[of!] : undefined;
      if (app === undefined) continue;
      const stretch = seconds.stretch(nowMicros, NEAR_SECONDS);
      const used = stretch.of('used') / (stretch.of('spanMs') / 1000);
      // On the average already too little; NaN without any data.
      if (!(used >= NEAR * Math.min(app.guaranteed, app.burst))) continue;
      if (stretch.slots < NEAR_SECONDS) continue;
      // In every second of the ten: the fewest tokens of one of them say so.
      const slots = seconds.last(nowMicros - 1_000_000, NEAR_SECONDS);
      const least = Math.min(...slots.map((slot) => slot!.used / (slot!.spanMs / 1000)));
      const of_ = least >= NEAR * app.burst ? 'burst' : 'guaranteed';
      if (least < NEAR * app[of_]) continue;
      this.tellOnce(nowMicros, { app: of!, of: of_, used, limit: app[of_] });
    }
  }

  private lookAtPolicy(policy: string, scarce: number, nowMicros: number): void {
    const before = this.scarceBefore.get(policy);
    if (before === undefined) {
      this.scarceBefore.set(policy, scarce);
      if (scarce === 0) return;
    }
    const more = scarce - (before ?? 0);
    if (more <= 0) {
      if (more < 0) this.scarceBefore.set(policy, scarce);
      return;
    }
    if (this.tellOnce(nowMicros, { policy, of: 'limit', scarce: more })) {
      this.scarceBefore.set(policy, scarce);
    }
  }

  private tellOnce(nowMicros: number, signal: EarlySignal): boolean {
    const key = `${signal.app === undefined ? 'policy' : 'app'} ${signal.app ?? signal.policy} ${signal.of}`;
    const told = this.toldMicros.get(key);
    if (told !== undefined && nowMicros - told < MINUTE_MICROS) return false;
    this.toldMicros.set(key, nowMicros);
    this.tell(signal);
    return true;
  }
}
