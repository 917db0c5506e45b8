import { Logger } from '@nestjs/common';
import { type Clock } from '../common/clock.js';
import { quoted, quotedError } from '../common/quoted.js';
import { type RefusedBody } from '../requests/rejections.js';
import { Tally } from '../common/tally.js';

/** Names of tiers that a log has of each policy. */
const MOST_UNKNOWN = 3;

/**
 * Counts requests with a fault: no key, an impossible cost, an unknown app, a function of the
 * application that failed. Inject it to look at the counts. The log has one
 * line a minute for each cause, however many requests there are and whatever they say.
 */
export class RequestFaults {
  private readonly faults: Tally;
  private readonly logger = new Logger('RateLimitModule');
  /** Mistakes of the application, which the next request will show again. */
  private readonly told = new Set<string>();
  private readonly unknownTiers = new Map<string, Set<unknown>>();

  /** @internal */
  constructor(clock: Pick<Clock, 'now'>) {
    this.faults = new Tally(clock);
  }

  /** Since the start. */
  get total(): number {
    return this.faults.total;
  }

  /** Since the start, by cause: `search: no key`, `user: failed`. */
  byCause(): Readonly<Record<string, number>> {
    return this.faults.byName();
  }

  /** @internal There is no key, or reading it failed: such requests share one bucket. */
  missing(policy: string, cause: unknown, keyText: string): void {
    const share = "Such requests share one bucket, '(none)'.";
    if (cause !== undefined) return this.failed(policy, 'key', cause, share);
    const text = `Policy '${policy}': a request has no key by ${keyText}. ${share}`;
    this.add(`${policy}: no key`, text);
  }

  /** @internal The caller has credentials, but no name yet. */
  beforeAuthentication(policy: string, hint: () => string): void {
    const fault = `Policy '${policy}': a request with credentials has no user`;
    if (this.told.has(fault)) return;
    this.told.add(fault);
    this.logger.warn(
      `${fault}: it was limited before authentication, by its address. ${hint()}; or name the user with the option 'user'.`,
    );
  }

  /** @internal A promise came where only a value helps. */
  promised(policy: string, what: string, then: string): void {
    this.once(
      `Policy '${policy}': its ${what} is a promise, which is no answer. ${then} Only 'user' and 'tier' may be async.`,
    );
  }

  /** @internal A function of the application has thrown, or what it promised has failed. */
  failed(policy: string | undefined, what: string, cause: unknown, then: string): void {
    const [name, where] =
      policy === undefined
        ? [`${what}: failed`, `The option '${what}' failed`]
        : [`${policy}: ${what} failed`, `Policy '${policy}': its ${what} failed`];
    this.add(name, `${where} (${quotedError(cause)}). ${then}`);
  }

  /** @internal Callers may have a say in the name: the first few of a policy are told, once each. */
  unknownTier(policy: string, tier: string, tiers: ReadonlySet<string>): void {
    let told = this.unknownTiers.get(policy);
    if (told === undefined) this.unknownTiers.set(policy, (told = new Set()));
    if (told.size >= MOST_UNKNOWN || told.has(tier)) return;
    told.add(tier);
    const known = tiers.size === 0 ? 'it has none' : [...tiers].join(', ');
    this.logger.warn(
      `Policy '${policy}': tier ${quoted(String(tier))} is none of its tiers (${known}). ` +
        'Such requests have the default tier; where that is meant, let it be undefined.',
    );
  }

  /** @internal The request was for the impossible. */
  badRequest(route: string, { statusCode, code }: RefusedBody, cause: unknown): void {
    this.add(`${route}: ${statusCode}`, `${route}: refused with ${code} (${quotedError(cause)}).`);
  }

  private add(cause: string, text: string): void {
    const count = this.faults.add(cause);
    if (count === undefined) return;
    this.logger.warn(count === 1 ? text : `${text} (${count} requests since the last line)`);
  }

  private once(text: string): void {
    if (this.told.has(text)) return;
    this.told.add(text);
    this.logger.warn(text);
  }
}
