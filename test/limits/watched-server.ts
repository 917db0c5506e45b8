import { Logger, type ExecutionContext, type Type } from '@nestjs/common';
import {
  RateLimiter,
  RateLimitModule,
  RequestFaults,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { startHttp, type HttpApp, type Platform } from '../support/nest/http-apps.js';

/** Everything that goes to the log while a test runs, by level. */
export class Log {
  readonly warnings: string[] = [];
  readonly errors: unknown[] = [];
  private readonly rejections: unknown[] = [];
  private readonly onRejection = (reason: unknown): void => void this.rejections.push(reason);

  start(): void {
    process.on('unhandledRejection', this.onRejection);
    Logger.overrideLogger({
      log: () => undefined,
      warn: (text: string) => this.warnings.push(text),
      error: (...what: unknown[]) => this.errors.push(what),
    });
  }

  /** Answers that no caller may cause, whatever it sends. */
  stop(): unknown[] {
    process.off('unhandledRejection', this.onRejection);
    Logger.overrideLogger(false);
    return [...this.rejections, ...this.errors];
  }
}

export const HOUR = { period: '1h' } as const;

export type Request = { headers: Record<string, string>; user?: unknown };
export const requestOf = (context: ExecutionContext): Request =>
  context.switchToHttp().getRequest<Request>();
export const header = (name: string) => (context: ExecutionContext) =>
  requestOf(context).headers[name];

/** A server whose callers mean harm, its log, and what it has counted. */
export class WatchedServer {
  private constructor(
    readonly http: HttpApp,
    readonly clock: ManualClock,
    readonly log: Log,
  ) {}

  static async start(
    platform: Platform,
    controller: Type,
    options: RateLimitModuleInput,
  ): Promise<WatchedServer> {
    const [clock, log] = [new ManualClock(), new Log()];
    log.start();
    const imports = [RateLimitModule.forRoot({ clock, ...options })];
    const http = await startHttp(platform, { imports, controllers: [controller] }, (app) =>
      app.useLogger(['warn', 'error']),
    );
    log.start();
    return new WatchedServer(http, clock, log);
  }

  /** An hour later, with an empty log. */
  renew(): void {
    this.clock.advance(3_600_000);
    this.log.warnings.length = 0;
  }

  async statuses(path: string, ...requests: Record<string, string>[]): Promise<number[]> {
    const all: number[] = [];
    for (const headers of requests) all.push((await this.http.get(path, headers)).status);
    return all;
  }

  async remaining(policy: string, key: string): Promise<number> {
    return (await this.http.app.get(RateLimiter).peek({ policy, key })).remaining;
  }

  faults(): Readonly<Record<string, number>> {
    return this.http.app.get(RequestFaults).byCause();
  }

  /** Gives what no caller may cause, whatever it sends. */
  async close(): Promise<unknown[]> {
    await this.http.close();
    return this.log.stop();
  }
}
