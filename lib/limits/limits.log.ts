import { Logger, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { SystemClock, type Clock } from '../common/clock.js';
import { quoted } from '../common/quoted.js';
import { StateLog } from '../common/state-log.js';
import { type RateLimiterOptions } from '../limiter/options.js';
import { type FailureMode } from '../limiter/policy-options.js';
import { type RateLimiter } from '../limiter/rate-limiter.js';
import { type PerRequest } from './key-resolver.js';

/** The module's options, as far as this log reads them. */
export interface LimitsLogOptions {
  readonly clock?: Clock;
  readonly enabled: boolean;
  readonly app?: PerRequest<string>;
  readonly quota?: RateLimiterOptions['quota'];
}

/** Names that a line lists; of more it says how many. */
const MOST_NAMES = 5;
const LONGEST_REASON = 200;

/** Redis lost and found, apps that do without it, and overload: a line when it begins and one when it is over. */
export class LimitsLog implements OnModuleInit, OnApplicationShutdown {
  private readonly logger = new Logger('RateLimitModule');
  private readonly states: StateLog;
  /** Apps that do without the store. */
  private readonly offline = new Set<string>();

  constructor(private readonly options: LimitsLogOptions) {
    this.states = new StateLog(options.clock ?? new SystemClock(), this.logger);
  }

  listenTo(limiter: RateLimiter): void {
    limiter.on('store', (event) => {
      if (event.state === 'down') {
        const reason = quoted(event.reason.message, LONGEST_REASON);
        const text = `The store is lost: ${reason}. ${meanwhile(limiter, this.options)}`;
        return this.states.began('store', text);
      }
      this.states.over('store', (time) => `The store is back, after ${time}: it decides again.`);
    });
    limiter.on('mode', ({ app, mode }) => {
      const isOffline = mode === 'offline';
      if (isOffline === this.offline.has(app)) return;
      if (isOffline) this.offline.add(app);
      else this.offline.delete(app);
      // All apps of a process go at once, so one line is for all of them.
      queueMicrotask(() => this.tellOffline());
    });
    limiter.on('hot_idle', ({ policy, limit, nodes }) => {
      const among = nodes === 1 ? '' : ` divided among ${nodes} processes`;
      this.logger.warn(
        `Policy ${quoted(policy)}: 'hot' has no effect. A tenth of its limit of ${limit}${among} is less ` +
          'than one request, so all of them count.',
      );
    });
    limiter.on('overload', ({ overloaded }) => {
      if (overloaded) this.states.began('overload', OVERLOADED);
      else this.states.over('overload', (time) => `The cluster's overload is over, after ${time}.`);
    });
  }

  onModuleInit(): void {
    if (!this.options.enabled) this.logger.warn(SWITCHED_OFF);
  }

  onApplicationShutdown(): void {
    this.states.close();
  }

  private tellOffline(): void {
    const { app, quota } = this.options;
    const served = quota?.local?.apps ?? (typeof app === 'string' ? [app] : undefined);
    const names = [...this.offline].filter((name) => served?.includes(name) ?? true);
    if (names.length === 0) {
      return this.states.over(
        'apps',
        (time) => `Apps are decided by the quota again, after ${time}.`,
      );
    }
    const [apps, are] = names.length === 1 ? ['App', 'is'] : ['Apps', 'are'];
    this.states.began(
      'apps',
      `${apps} ${listed(names)} ${are} offline: decided by this process's share of the guarantee.`,
    );
  }
}

const SWITCHED_OFF =
  'SWITCHED OFF by enabled: false: NO limit, fallback or protection holds in this process, and the store is not opened.';

const OVERLOADED =
  'The cluster is overloaded: all apps together ask for more than nine tenths of its capacity. Guarantees ' +
  'hold; what is beyond them is shared by priority.';

/** Where decisions come from while the store is away. */
function meanwhile(limiter: RateLimiter, { quota }: LimitsLogOptions): string {
  const by: Record<FailureMode, string[]> = { local: [], open: [], closed: [] };
  for (const name of limiter.policyNames()) {
    const mode = limiter.policy(name)?.failureMode;
    if (mode !== undefined) by[mode].push(name);
  }
  const parts = [
    by.local.length > 0 && `this process's share for ${listed(by.local)} (failure mode local)`,
    by.open.length > 0 && `nobody for ${listed(by.open)}: all pass (open)`,
    by.closed.length > 0 && `nobody for ${listed(by.closed)}: all are refused (closed)`,
    quota !== undefined && "this process's share of the guarantees for the quota",
  ].filter((part) => part !== false);
  return parts.length === 0 ? 'No limit needs it.' : `Meanwhile decides: ${parts.join('; ')}.`;
}

function listed(names: readonly string[]): string {
  const first = names
    .toSorted()
    .slice(0, MOST_NAMES)
    .map((name) => quoted(name));
  const more = names.length - first.length;
  return more > 0 ? `${first.join(', ')} and ${more} more` : first.join(', ');
}
