import { AsyncLocalStorage } from 'node:async_hooks';
import { request, type IncomingMessage, type RequestOptions } from 'node:http';
import { Body, Controller, Get, Injectable, Post, Sse, UseGuards } from '@nestjs/common';
import { type CanActivate, type INestApplication } from '@nestjs/common';
import { Subject, type Observable } from 'rxjs';
import {
  Overload,
  RateLimitModule,
  type OverloadInput,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { startHttp, type HttpApp, type Platform } from '../support/nest/http-apps.js';
import { until } from '../support/until.js';

export const storage = new AsyncLocalStorage<string>();

/** Requests that are under way, for the test to end. */
export class Held {
  readonly names: string[] = [];
  readonly ends: (() => void)[] = [];
  readonly streams: Subject<{ data: string }>[] = [];
  guarded = 0;
  bodies = 0;

  async hold(name: string): Promise<string> {
    this.names.push(name);
    await new Promise<void>((resolve) => this.ends.push(resolve));
    return `${name} in ${storage.getStore() ?? 'nothing'}`;
  }

  end(): void {
    this.ends.shift()!();
  }
}

let held: Held;

/** The requests of the next application. */
export const holdAnew = (): Held => (held = new Held());

@Injectable()
class Counting implements CanActivate {
  canActivate(): boolean {
    held.guarded++;
    return true;
  }
}

@Controller()
@UseGuards(Counting)
export class Routes {
  @Get('hold')
  hold(): Promise<string> {
    return held.hold('hold');
  }

  @Get('quick')
  quick(): string {
    held.names.push('quick');
    return 'quick';
  }

  @Post('body')
  body(@Body() body: object): object {
    held.bodies++;
    return { length: JSON.stringify(body).length };
  }

  @Get('burn')
  burn(): string {
    const end = performance.now() + 4;
    while (performance.now() < end);
    return 'burnt';
  }

  @Get('broken')
  broken(): never {
    held.names.push('broken');
    throw new Error('broken');
  }

  @Get('rejected')
  rejected(): Promise<never> {
    held.names.push('rejected');
    return Promise.reject(new Error('rejected'));
  }

  @Get('health')
  health(): string {
    return 'well';
  }

  @Sse('events')
  events(): Observable<{ data: string }> {
    const stream = new Subject<{ data: string }>();
    held.streams.push(stream);
    return stream;
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly isReused: boolean;
}

/** One request by Node's own client, which shows what fetch hides. */
export function ask(url: string, options: RequestOptions = {}, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () => {
        const { statusCode: status = 0, headers } = response;
        resolve({ status, headers, body: text, isReused: sent.reusedSocket });
      });
    });
    sent.on('error', reject);
    if (options.headers !== undefined && 'expect' in options.headers) {
      sent.on('continue', () => sent.end(body));
      sent.flushHeaders();
    } else sent.end(body);
  });
}

/** One request may run, and one wait: so it is known what becomes of each, however slow the machine is. */
export const NARROW: OverloadInput = { enabled: true, maxInFlight: 1, maxWaiting: 1 };

/** The application of a test, with a line of one. */
export class LineApp {
  server!: HttpApp;
  overload!: Overload;
  readonly clock = new ManualClock();
  readonly held = holdAnew();

  constructor(private readonly platform: Platform) {}

  async start(
    changes: OverloadInput | undefined = {},
    module: RateLimitModuleInput = {},
    prepare?: (app: INestApplication) => void,
  ): Promise<void> {
    const options = { overload: { ...NARROW, ...changes }, clock: this.clock, ...module };
    this.server = await startHttp(
      this.platform,
      { imports: [RateLimitModule.forRoot(options)], controllers: [Routes] },
      prepare,
    );
    this.overload = this.server.app.get(Overload);
  }

  readonly get = (path: string, headers = {}, options: RequestOptions = {}): Promise<Answer> =>
    ask(this.server.url + path, { headers, ...options });

  /** One runs, one waits. */
  async fill(headers = {}): Promise<Promise<Answer>[]> {
    const all = [this.get('/hold', headers)];
    await until(() => this.held.names.length > 0);
    all.push(this.get('/quick', headers));
    await until(() => this.overload.stats().waiting === 1);
    return all;
  }

  async end(): Promise<void> {
    for (const end of this.held.ends) end();
    for (const stream of this.held.streams) stream.complete();
    await this.server.close();
  }
}
