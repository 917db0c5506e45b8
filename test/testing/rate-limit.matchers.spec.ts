import { Controller, Get, HttpException } from '@nestjs/common';
import { type NestFastifyApplication } from '@nestjs/platform-fastify';
import { RateLimit, RateLimitModule } from 'nestjs-weir';
import {
  ManualClock,
  rateLimitMatchers,
  type LimitedResponse,
  type RateLimitMatchers,
} from 'nestjs-weir/testing';
import { startHttp, type HttpApp } from '../support/nest/http-apps.js';

type InjectResponse = Awaited<ReturnType<NestFastifyApplication['inject']>>;

declare module 'vitest' {
  // oxlint-disable-next-line typescript/no-empty-object-type
  interface Matchers<T> extends RateLimitMatchers {}
}

expect.extend(rateLimitMatchers);

@Controller()
class LimitedController {
  @Get('limited')
  @RateLimit('login', { quota: false })
  limited(): string {
    return 'ok';
  }

  @Get('own-words')
  @RateLimit({ rate: '1/min', quota: false, rejection: () => new HttpException('enough', 429) })
  ownRejection(): string {
    return 'ok';
  }

  @Get('overloaded')
  @RateLimit()
  overloaded(): string {
    return 'ok';
  }

  @Get('broken')
  broken(): string {
    throw new HttpException('down', 503);
  }
}

describe('toBeRateLimited', () => {
  let http: HttpApp;

  beforeAll(async () => {
    const module = RateLimitModule.forRoot({
      clock: new ManualClock(),
      policies: { login: { rate: '1/min' } },
      quota: { cluster: { capacity: 100 }, apps: { app: { guaranteed: 1, burst: 100_000 } } },
      app: 'app',
    });
    const metadata = { imports: [module], controllers: [LimitedController] };
    http = await startHttp('fastify', metadata);
    await http.get('/limited');
    await http.get('/own-words');
  });
  afterAll(() => http.close());

  const partsOf = async (path: string) => {
    const response = await http.get(path);
    const { status } = response;
    return { status, headers: Object.fromEntries(response.headers), text: await response.text() };
  };

  /** The same answer in the three forms. */
  const forms: [string, (path: string) => Promise<LimitedResponse>][] = [
    ['fetch', (path) => http.get(path)],
    ['supertest', partsOf],
    // Jest cannot load what `inject` needs on every Node; test/package runs the real one.
    [
      'inject',
      async (path) => {
        const { status: statusCode, headers, text: payload } = await partsOf(path);
        return { statusCode, headers, payload } satisfies Partial<InjectResponse>;
      },
    ],
  ];

  it.each(forms)('knows a denial by %s, its policy and its time', async (_, get) => {
    await expect(await get('/limited')).toBeRateLimited();
    await expect(await get('/limited')).toBeRateLimited({ policy: 'login', retryAfterMs: 60_000 });
  });

  it.each(forms)('knows by %s what is none', async (_, get) => {
    await expect(await get('/broken')).not.toBeRateLimited();
    await expect(await get('/limited')).not.toBeRateLimited({ policy: 'other' });
    await expect(await get('/limited')).not.toBeRateLimited({ retryAfterMs: 1 });
  });

  it.each(forms)('knows denials in words of their own by %s', async (_, get) => {
    await expect(await get('/own-words')).toBeRateLimited({ retryAfterMs: 60_000 });
  });

  it('takes a service at its capacity for limited', async () => {
    let answer = await http.get('/overloaded');
    for (let i = 0; i < 200 && answer.status === 200; i++) answer = await http.get('/overloaded');
    expect(answer.status).toBe(503);
    await expect(answer).toBeRateLimited();
  });

  it('leaves the body to whoever reads it next, and does without one that was read', async () => {
    const response = await http.get('/limited');
    await expect(response).toBeRateLimited({ policy: 'login' });
    await expect(response.json()).resolves.toMatchObject({ status: 429 });
    await expect(response).toBeRateLimited({ retryAfterMs: 60_000 });
  });

  it('says what it found instead', async () => {
    const messageOf = async (response: unknown, expected = {}): Promise<string> =>
      (await rateLimitMatchers.toBeRateLimited(response, expected)).message();
    expect(await messageOf(await http.get('/broken'), { policy: 'login' })).toBe(
      "expected the response to be rate limited by 'login', but its status is 503",
    );
    expect(await messageOf(await http.get('/limited'), { policy: 'a', retryAfterMs: 5 })).toBe(
      "expected the response to be rate limited by 'a' for 5 ms, but it was denied by login and it says to come back after 60000 ms",
    );
    expect(await messageOf(await http.get('/limited'))).toBe(
      'expected the response not to be rate limited',
    );
  });

  it('wants a response', async () => {
    await expect(rateLimitMatchers.toBeRateLimited({ ok: true })).rejects.toThrow(/with a status/);
  });
});
