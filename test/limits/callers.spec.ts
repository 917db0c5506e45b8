import { Body, Controller, Get, Post, type INestApplication } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { clientAddress, RateLimit, RateLimiter, RateLimitModule } from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { PLATFORMS, startHttp, type HttpApp } from '../support/nest/http-apps.js';
import { Warnings } from '../support/nest/warnings.js';

const ONCE = { rate: 1, period: '1h' } as const;
const MEGABYTE = 2 ** 20;

@Controller()
class CallersController {
  @Get('ip')
  @RateLimit({ ...ONCE, key: 'ip' })
  ip(): string {
    return 'ok';
  }

  @Get('address')
  @RateLimit('by-address')
  address(): string {
    return 'ok';
  }

  @Get('header')
  @RateLimit('by-header')
  header(): string {
    return 'ok';
  }

  @Get('prototype/:id')
  @RateLimit({ ...ONCE, key: { param: 'params.__proto__' } })
  prototype(): string {
    return 'ok';
  }

  @Get('pair')
  @RateLimit({ ...ONCE, key: [{ header: 'x-a' }, { header: 'x-b' }] })
  pair(): string {
    return 'ok';
  }

  @Post('body')
  @RateLimit('by-body')
  body(@Body() body: { sku: string }): number {
    return body.sku.length;
  }
}

describe.each(PLATFORMS)('on %s', (platform) => {
  let http: HttpApp;
  const warnings = new Warnings();

  /** A number trusts nobody on Fastify, which wants the addresses of proxies. */
  const start = async (trust: boolean | 1): Promise<void> => {
    warnings.texts.length = 0;
    const adapter =
      platform === 'express'
        ? new ExpressAdapter()
        : new FastifyAdapter({
            trustProxy: trust === 1 ? '127.0.0.1' : trust,
            bodyLimit: 20 * MEGABYTE,
          });
    const prepare = (app: INestApplication): void => {
      warnings.listen(app);
      if (!(adapter instanceof ExpressAdapter)) return;
      adapter.set('trust proxy', trust);
      adapter.useBodyParser('json', false, { limit: 20 * MEGABYTE });
    };
    const module = RateLimitModule.forRoot({
      clock: new ManualClock(),
      policies: {
        'by-address': { ...ONCE, key: 'ip' },
        'by-header': { ...ONCE, key: { header: 'X-Key' } },
        'by-body': { ...ONCE, key: { param: 'body.sku' } },
      },
    });
    const metadata = { imports: [module], controllers: [CallersController] };
    http = await startHttp(platform, metadata, prepare, adapter);
  };
  const statuses = async (path: string, ...requests: Record<string, string>[]) => {
    const all: number[] = [];
    for (const headers of requests) all.push((await http.get(path, headers)).status);
    return all;
  };
  const from = (address: string): Record<string, string> => ({ 'x-forwarded-for': address });

  afterEach(() => http.close());

  it('X-Forwarded-For is ignored where no proxy is trusted, and that is told once', async () => {
    await start(false);
    const made = ['1.1.1.1', '2.2.2.2', '3.3.3.3'].map(from);
    expect(await statuses('/ip', ...made)).toEqual([200, 429, 429]);
    expect(warnings.texts).toEqual([expect.stringMatching(/X-Forwarded-For.*trust.*proxy/)]);
  });

  it('behind one proxy a caller has the address that the proxy saw, whatever was made up', async () => {
    await start(1);
    const forged = ['9.9.9.9, 1.1.1.1', '8.8.8.8, 1.1.1.1', '1.1.1.1', '2.2.2.2'].map(from);
    expect(await statuses('/ip', ...forged)).toEqual([200, 429, 429, 200]);
    expect(warnings.texts).toEqual([]);
  });

  it('an IPv6 caller is its /64', async () => {
    await start(1);
    const callers = ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9', '2001:db8:1:3::1'].map(from);
    expect(await statuses('/ip', ...callers)).toEqual([200, 429, 200]);
  });

  it('a caller can be named by its address to the limiter, whatever that looks like', async () => {
    await start(1);
    const limiter = http.app.get(RateLimiter);
    for (const address of ['192.0.2.1', '::ffff:192.0.2.9', '2001:db8:1:2::1']) {
      const request = { policy: 'by-address', key: clientAddress(address) };
      expect(await statuses('/address', from(address), from(address))).toEqual([200, 429]);
      await limiter.refund(request);
      expect(await statuses('/address', from(address), from(address))).toEqual([200, 429]);
      await limiter.reset(request);
      expect(await statuses('/address', from(address))).toEqual([200]);
    }
  });

  it('an IPv4 caller is the same in the clothes of IPv6', async () => {
    await start(1);
    const callers = ['192.0.2.1', '::ffff:192.0.2.1'].map(from);
    expect(await statuses('/ip', ...callers)).toEqual([200, 429]);
  });

  it('whoever trusts every proxy is warned, once', async () => {
    await start(true);
    expect(await statuses('/ip', from('1.1.1.1'), from('2.2.2.2'))).toEqual([200, 200]);
    expect(warnings.texts).toEqual([expect.stringMatching(/'trust proxy' is true.*choose/)]);
  });

  it('Forwarded is looked at by nobody, and that is told once', async () => {
    await start(false);
    const made = [{ forwarded: 'for=1.1.1.1' }, { forwarded: 'for=2.2.2.2' }];
    expect(await statuses('/ip', ...made)).toEqual([200, 429]);
    expect(warnings.texts).toEqual([expect.stringMatching(/Forwarded/)]);
  });

  it('a flood of headers has keys of a bounded size', async () => {
    await start(false);
    const long = 'k'.repeat(7000);
    expect(await statuses('/header', { 'x-key': `${long}1` }, { 'x-key': `${long}2` })).toEqual([
      200, 200,
    ]);
    expect(await statuses('/header', { 'x-key': `${long}1` })).toEqual([429]);
  });

  it('a header that is missing or empty is one caller, told once', async () => {
    await start(false);
    expect(await statuses('/header', {}, { 'x-key': '' }, {})).toEqual([200, 429, 429]);
    expect(warnings.texts).toEqual([
      expect.stringMatching(/'by-header'.*no key by { header: 'X-Key' }\./),
    ]);
  });

  it('parts of a key cannot be moved from one to the other', async () => {
    await start(false);
    const callers = [
      { 'x-a': 'a;1:b', 'x-b': 'c' },
      { 'x-a': 'a', 'x-b': '1:b;1:c' },
    ];
    expect(await statuses('/pair', ...callers)).toEqual([200, 200]);
  });

  it('what every object has is nobody’s key', async () => {
    await start(false);
    expect(await statuses('/prototype/1', {}, {})).toEqual([200, 429]);
  });

  it('keys of ten megabytes are told apart and not kept', async () => {
    await start(false);
    const sku = 's'.repeat(10 * MEGABYTE);
    const post = (text: string): Promise<Response> =>
      fetch(`${http.url}/body`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ sku: text }),
      });
    const answers = [await post(`${sku}1`), await post(`${sku}2`), await post(`${sku}1`)];
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 429]);
    expect(answers.every(({ headers }) => [...headers.values()].join().length < 1000)).toBe(true);
    expect(http.app.get(RateLimiter).stats().keys).toBe(2);
  });
});
