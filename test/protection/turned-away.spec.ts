import {
  Catch,
  Controller,
  Get,
  Inject,
  Logger,
  Module,
  Param,
  Res,
  UseFilters,
  type ArgumentsHost,
  type ExceptionFilter,
  type ModuleMetadata,
} from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { MessagePattern } from '@nestjs/microservices';
import {
  BreakerOpenError,
  Protection,
  ProtectionFilter,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { PLATFORMS, startHttp, type HttpApp, type Platform } from '../support/nest/http-apps.js';
import { Ledger, ledgerModules, SECRET, TOLD, TROUBLES } from '../support/nest/ledger.js';
import { LoggedErrors, Warnings } from '../support/nest/warnings.js';

interface AnyResponse {
  readonly raw?: AnyResponse;
  status?(code: number): AnyResponse;
  code?(code: number): AnyResponse;
  send(body: string): void;
  write(text: string): void;
}

/** Says its own name. */
function teapot(
  ...errors: (abstract new (...args: never[]) => Error)[]
): new () => ExceptionFilter {
  @Catch(...errors)
  class Teapot implements ExceptionFilter {
    catch(_error: Error, host: ArgumentsHost): void {
      const response = host.switchToHttp().getResponse<AnyResponse>();
      (response.status ?? response.code)!.call(response, 418).send('my own words');
    }
  }
  return Teapot;
}

const Mine = teapot(BreakerOpenError);
const CatchAll = teapot();

@Controller()
class LedgerController {
  constructor(@Inject(Ledger) private readonly ledger: Ledger) {}

  @Get('ask/:trouble')
  ask(@Param('trouble') trouble: string): Promise<unknown> {
    return this.ledger.ask(trouble);
  }

  @Get('mine/:trouble')
  @UseFilters(Mine)
  mine(@Param('trouble') trouble: string): Promise<unknown> {
    return this.ledger.ask(trouble);
  }

  @Get('begun/:trouble')
  async begun(@Param('trouble') trouble: string, @Res() response: AnyResponse): Promise<void> {
    (response.raw ?? response).write('the beginning');
    await this.ledger.ask(trouble);
  }
}

/** Also takes messages, so its application may be a hybrid one. */
@Controller('both')
class BothController extends LedgerController {
  @MessagePattern('ask')
  tell(): void {}
}

@Controller('all-mine')
@UseFilters(Mine)
class MyController extends LedgerController {}

@Controller('theirs')
@UseFilters(ProtectionFilter)
class TheirController extends LedgerController {}

let http: HttpApp;

async function start(
  platform: Platform,
  options: RateLimitModuleInput = {},
  more: Pick<ModuleMetadata, 'providers'> = {},
  prepare?: Parameters<typeof startHttp>[2],
): Promise<void> {
  const { imports, providers } = ledgerModules(options);
  http = await startHttp(
    platform,
    {
      imports,
      providers: [...providers, ...(more.providers ?? [])],
      controllers: [LedgerController, MyController, TheirController, BothController],
    },
    prepare,
  );
}

const statusOf = async (path: string): Promise<number> => (await http.get(path)).status;

beforeAll(() => {
  Logger.overrideLogger(false);
});
afterEach(() => http.close());

describe.each(PLATFORMS)('what callers over %s are told', (platform) => {
  it('if protection turns them away: 503 or 504, and when to come back if that is known', async () => {
    await start(platform);
    for (const trouble of TROUBLES) {
      const response = await http.get(`/ask/${trouble}`);
      const { statusCode, message, status: _status, ...told } = TOLD[trouble];
      const [seconds, advice] = {
        open: ['5', ' Try again in 5 s.'] as const,
        full: [null, ''] as const,
        limited: ['30', ' Try again in 30 s.'] as const,
        late: [null, ''] as const,
      }[trouble];
      expect([trouble, response.status]).toEqual([trouble, statusCode]);
      expect([trouble, response.headers.get('retry-after')]).toEqual([trouble, seconds]);
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(response.headers.get('content-type')).toContain('application/problem+json');
      expect(await response.json()).toEqual({
        type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
        title: message,
        status: statusCode,
        detail: `${message}.${advice}`,
        statusCode,
        message,
        ...told,
      });
    }
  });

  it('never which resource it was', async () => {
    await start(platform);
    for (const trouble of [...TROUBLES, 'big', 'unknown']) {
      const response = await http.get(`/ask/${trouble}`);
      const whole = JSON.stringify([...response.headers]) + (await response.text());
      expect([trouble, whole.includes(SECRET)]).toEqual([trouble, false]);
    }
  });

  it('as before, if the program is wrong', async () => {
    await start(platform);
    expect([await statusOf('/ask/big'), await statusOf('/ask/unknown')]).toEqual([500, 500]);
  });

  it('that it is over, if they have been told something else already', async () => {
    await start(platform);
    const log = new LoggedErrors();
    log.start();
    const response = await http.get('/begun/open');
    expect([response.status, await response.text()]).toEqual([200, 'the beginning']);
    expect(await statusOf('/ask/none')).toBe(200);
    log.stop();
    expect(log.errors).toEqual([]);
  });

  it('the same by middleware', async () => {
    await start(platform, {}, {}, (app) => {
      const protection = app.get(Protection);
      app.use(
        '/before',
        (_request: unknown, _response: unknown, next: (error: unknown) => void) => {
          protection.run('secret-open', () => Promise.resolve()).catch(next);
        },
      );
    });
    const response = await http.get('/before');
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
    expect(response.headers.get('content-type')).toContain('application/problem+json');
  });
});

describe('the words of an application', () => {
  it('go before those of this library, on a route and on a controller', async () => {
    await start('express');
    const paths = ['/mine/open', '/mine/full', '/all-mine/ask/open', '/all-mine/ask/late'];
    expect(await Promise.all(paths.map(statusOf))).toEqual([418, 503, 418, 504]);
  });

  it('go before if app.useGlobalFilters has brought them', async () => {
    await start('express', {}, {}, (app) => app.useGlobalFilters(new CatchAll()));
    expect(await statusOf('/ask/open')).toBe(418);
    const others = ['/theirs/ask/open', '/both/ask/open'];
    expect(await Promise.all(others.map(statusOf))).toEqual([503, 503]);
  });

  it('come after if they are an APP_FILTER of the module that imports RateLimitModule', async () => {
    await start('express', {}, { providers: [{ provide: APP_FILTER, useClass: CatchAll }] });
    expect([await statusOf('/ask/open'), await statusOf('/ask/big')]).toEqual([503, 418]);
  });

  it.each([
    ['before', 503],
    ['after', 418],
  ])('if they are an APP_FILTER of a module that is imported %s it: %i', async (when, status) => {
    @Module({ providers: [{ provide: APP_FILTER, useClass: CatchAll }] })
    class FiltersModule {}
    const { imports, ...rest } = ledgerModules();
    const all = when === 'before' ? [FiltersModule, ...imports] : [...imports, FiltersModule];
    http = await startHttp('express', { ...rest, imports: all, controllers: [LedgerController] });
    expect([await statusOf('/ask/open'), await statusOf('/ask/big')]).toEqual([status, 418]);
  });
});

describe('contexts that are not known here', () => {
  it('end with the error itself', async () => {
    await start('express');
    const error = new BreakerOpenError('secret-open', 1);
    const host = { getType: () => 'console', getArgs: () => [] } as unknown as ArgumentsHost;
    expect(() => http.app.get(ProtectionFilter).catch(error, host)).toThrow(error);
  });
});

describe('the options of an application', () => {
  it('say what the types of problems begin with, and whether there is a Retry-After', async () => {
    await start('express', { problemBase: 'https://shop.test/', headers: { retryAfter: false } });
    const response = await http.get('/ask/open');
    expect(response.headers.get('retry-after')).toBeNull();
    expect(await response.json()).toMatchObject({
      type: 'https://shop.test/temporary-reduced-capacity',
      retryAfterMs: 4200,
    });
  });
});

describe('the log of an application', () => {
  it('has the name of the resource, once a minute', async () => {
    const warnings = new Warnings();
    await start('express', {}, {}, warnings.listen);
    const clock = http.app.get(ManualClock);
    for (let i = 0; i < 5; i++) await http.get('/ask/open');
    clock.advance(60_000);
    await http.get('/ask/open');
    await http.get('/ask/late');
    Logger.overrideLogger(false);
    expect(warnings.texts).toEqual([
      '1 request without an answer (BREAKER_OPEN), the last one by resource "secret-open": its breaker is open, retry in 4200 ms',
      '5 requests without an answer (BREAKER_OPEN), the last one by resource "secret-open": its breaker is open, retry in 4200 ms',
      '1 request without an answer (DEADLINE_EXCEEDED), the last one by resource "secret-late": no answer within 50 ms',
    ]);
  });
});
