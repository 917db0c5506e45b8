import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  Controller,
  Get,
  Injectable,
  Logger,
  RequestMethod,
  UnauthorizedException,
  VersioningType,
  type CanActivate,
  type Type,
} from '@nestjs/common';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import {
  Overload,
  RateLimitConfig,
  RateLimiter,
  RateLimitModule,
  RateLimitMonitor,
  type CapacityReport,
} from 'nestjs-weir';
import { loopbackOnly, RateLimitDashboardModule } from 'nestjs-weir/dashboard';
import { ManualClock } from 'nestjs-weir/testing';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { PLATFORMS, startHttp } from '../support/nest/http-apps.js';
import { until } from '../support/until.js';
import { type Changes, withChanges } from '../../lib/dashboard/changes.js';
import { Dashboard } from '../../lib/dashboard/dashboard.js';
import { type Looked, type PageFrame } from '../../lib/dashboard/frame.js';
import { quietFleet } from '../observability/snapshots.js';
import { closed, open, startOps, type OpsApp } from './ops-app.js';

// The page's own files come from the build.
beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);

const opened: OpsApp[] = [];
const ops = async (...args: Parameters<typeof startOps>): Promise<OpsApp> => {
  const app = await startOps(...args);
  opened.push(app);
  return app;
};
afterEach(async () => {
  await Promise.all(opened.splice(0).map(({ close }) => close()));
});

const WRITABLE = { write: { guard: open } };

/** The frames of a stream, one after the other, as the page has them. */
async function* framesOf(response: Response): AsyncGenerator<PageFrame> {
  let text = '';
  let last: unknown;
  for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
    text += part;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/m.exec(text.slice(0, end)) ?? [];
      text = text.slice(end + 2);
      if (data === undefined) continue;
      const told = JSON.parse(data) as unknown;
      last = name === 'state' ? told : withChanges(last, told as Changes);
      yield last as PageFrame;
    }
  }
}

/** The lines of the log from now on. */
function warnings(): () => string[] {
  const warn = vi.spyOn(Logger.prototype, 'warn').mockImplementation(() => {});
  onTestFinished(() => warn.mockRestore());
  return () => warn.mock.calls.map(([line]) => String(line));
}

describe.each(PLATFORMS)('the dashboard on %s', (platform) => {
  it('is a page at its path, whose files are asked for below it', async () => {
    const { get, url } = await ops(platform);
    const page = await get('/ops/limits/');
    expect(page.status).toBe(200);
    expect(page.headers.get('content-type')).toMatch(/^text\/html/);
    expect(page.headers.get('cache-control')).toBe('no-store');
    const html = await page.text();
    const files = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file]) => file!);
    expect(files).toHaveLength(4);
    for (const file of files) {
      expect(file).toMatch(/^assets\/[a-z]+-[0-9a-f]{10}\.(?:js|css|svg)$/);
      const asset = await fetch(new URL(file, `${url}/ops/limits/`));
      expect(asset.status).toBe(200);
      expect(asset.headers.get('cache-control')).toMatch(/immutable/);
    }
    // No address of another server, and nothing that a strict policy would stop.
    expect(html).not.toMatch(/https?:|<script>|style=/);
  });

  it('does not stand in line, whatever the prefix', async () => {
    const patience = { target: '1m', interval: '1h' } as const;
    const overload = { enabled: true, maxInFlight: 1, maxWaiting: 1, ...patience };
    const { app, get, send } = await ops(platform, { overload }, WRITABLE, (made) => {
      made.setGlobalPrefix('api', { exclude: ['page'] });
    });
    const { line } = app.get(Overload);
    line.started();
    const waits = get('/api/search');
    await until(() => line.size === 1);
    expect((await get('/api/search')).status).toBe(503);
    expect((await get('/api/ops/limits/api/state')).status).toBe(200);
    const asked = await send('POST', '/api/ops/limits/api/validate', { document: {} });
    expect(asked.status).not.toBe(503);
    line.ended();
    expect((await waits).status).toBe(200);
  });

  it('leads from its path to the page, under any prefix and version', async () => {
    const { url } = await ops(platform, {}, {}, (app) => {
      app.setGlobalPrefix('api', { exclude: [{ path: 'health', method: RequestMethod.GET }] });
      app.enableVersioning({ type: VersioningType.URI, defaultVersion: '1' });
    });
    const bare = await fetch(`${url}/api/ops/limits?a=1`, { redirect: 'manual' });
    expect([bare.status, bare.headers.get('location')]).toEqual([308, 'limits/?a=1']);
    const page = await fetch(`${url}/api/ops/limits`);
    expect([page.status, page.url]).toEqual([200, `${url}/api/ops/limits/`]);
  });

  it('sends the strictest policy with every answer, whatever the application adds', async () => {
    const { get } = await ops(platform, {}, {}, (app) => {
      app.use(
        (_: unknown, response: { setHeader(n: string, v: string): void }, next: () => void) => {
          response.setHeader('content-security-policy', "default-src * 'unsafe-inline'");
          next();
        },
      );
    });
    for (const path of ['', 'api/state', 'api/config', 'assets/none.js']) {
      const { headers } = await get(`/ops/limits/${path}`);
      expect(headers.get('content-security-policy')).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
          "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'",
      );
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
    }
  });

  it('sends it also with what guards, body parsers and Nest itself answer, under any prefix', async () => {
    let answer: () => boolean = () => true;
    const guard = { canActivate: () => answer() };
    const { get, send } = await ops(platform, {}, { guard, ...WRITABLE }, (app) => {
      app.setGlobalPrefix('api/v1');
    });
    const base = '/api/v1/ops/limits';
    const mustBeStrict = ({ status, headers }: Response, expected: number): void => {
      expect(status).toBe(expected);
      expect(headers.get('content-security-policy')).toMatch(/^default-src 'none'.*-for 'script'$/);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('x-frame-options')).toBe('DENY');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin');
      expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
      expect(headers.get('cache-control')).toBe('no-store');
    };
    for (const path of ['/none', '/api/none', '/assets/x/y', '/api/rollback']) {
      mustBeStrict(await get(base + path), 404);
    }
    const large = await send('POST', `${base}/api/validate`, { text: 'x'.repeat(3_000_000) });
    mustBeStrict(large, 413);
    const json = { 'content-type': 'application/json' };
    const broken = await fetch(large.url, { method: 'POST', body: '{', headers: json });
    mustBeStrict(broken, 400);
    answer = () => false;
    for (const path of ['', '/', '/api/state']) mustBeStrict(await get(base + path), 403);
    answer = () => {
      throw new UnauthorizedException();
    };
    mustBeStrict(await get(`${base}/`), 401);
    answer = () => {
      throw new Error('no directory');
    };
    mustBeStrict(await get(`${base}/`), 500);
    const other = await get('/api/v1/ops/limitless');
    expect([other.status, other.headers.get('content-security-policy')]).toEqual([404, null]);
  });

  it('asks its guard first, also for files and streams, and injects what that needs', async () => {
    @Injectable()
    class Door {
      isOpen = false;
    }
    @Injectable()
    class OpsGuard implements CanActivate {
      constructor(private readonly door: Door) {}
      canActivate(): boolean {
        return this.door.isOpen;
      }
    }
    class DoorModule {}
    const doorModule = { module: DoorModule, providers: [Door], exports: [Door] };
    const dashboard = { guard: OpsGuard, imports: [doorModule], ...WRITABLE };
    const { get, send, app } = await ops(platform, {}, dashboard);
    const paths = ['', 'assets/x.js', 'api/state', 'api/stream', 'api/history'];
    for (const path of paths) expect((await get(`/ops/limits/${path}`)).status).toBe(403);
    expect((await send('PUT', '/ops/limits/api/config', {})).status).toBe(403);
    app.get(Door, { strict: false }).isOpen = true;
    expect((await get('/ops/limits/')).status).toBe(200);
  });

  it('says nothing of why a guard has thrown', async () => {
    const guard = {
      canActivate: () => {
        throw new Error('password of the directory: hunter2');
      },
    };
    const { get } = await ops(platform, {}, { guard });
    const answer = await get('/ops/limits/');
    expect(answer.status).toBe(500);
    expect(await answer.text()).not.toMatch(/hunter2/);
  });

  it('has no routes for changes unless they were asked for, and both guards before them', async () => {
    const readOnly = await ops(platform);
    const body = { text: '{}', expectedRevision: 0 };
    expect((await readOnly.send('PUT', '/ops/limits/api/config', body)).status).toBe(404);
    expect((await readOnly.send('POST', '/ops/limits/api/rollback/1', body)).status).toBe(404);
    const guarded = await ops(platform, {}, { write: { guard: closed } });
    expect((await guarded.send('PUT', '/ops/limits/api/config', body)).status).toBe(403);
    expect((await guarded.get('/ops/limits/')).status).toBe(200);
  });

  it('takes changes from its own page alone, and says once a minute that others came', async () => {
    const clock = new ManualClock();
    const lines = warnings();
    const { url, send, app } = await ops(
      platform,
      { clock },
      { ...WRITABLE, origins: ['https://ops.example'] },
    );
    const { revision } = app.get(RateLimitConfig).current();
    const path = '/ops/limits/api/config';
    const body = { patch: { policies: { search: { rate: 9 } } }, expectedRevision: revision };
    const attacks: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'x-weir-request': '0' },
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/x-www-form-urlencoded' },
    ];
    for (const headers of attacks) {
      const answer = await send('PUT', path, body, headers);
      expect(answer.status).toBe(403);
      const { detail } = (await answer.json()) as { detail: string };
      expect(detail).toMatch(/^Changes (?:are sent|come)/);
    }
    const bare = await fetch(url + path, {
      method: 'PUT',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', 'x-weir-request': '1' },
    });
    expect(bare.status).toBe(403);
    const refused = 'A change that may be of another site was refused: ';
    const told = (): string[] => lines().filter((line) => line.startsWith(refused));
    expect(told()).toEqual([`${refused}Changes come from the page itself, not from another site.`]);
    clock.advance(60_000);
    await send('PUT', path, body, attacks[4]);
    expect(told()[1]).toBe(
      `${refused}Changes are sent as application/json. (${attacks.length + 1} times since the last line)`,
    );
    expect(app.get(RateLimitConfig).current().revision).toBe(revision);
    expect((await send('PUT', path, body, { origin: 'https://ops.example' })).status).toBe(200);
    expect(app.get(RateLimitConfig).current().document.policies!.search!.rate).toBe(9);
  });

  it('takes a change without an Origin if the browser says that it is of the same origin', async () => {
    const { url, app } = await ops(platform, {}, WRITABLE);
    const { revision } = app.get(RateLimitConfig).current();
    const put = async (site: string): Promise<number> => {
      // As browsers send it; fetch of Node sets it itself.
      const asked = request(`${url}/ops/limits/api/config`, {
        method: 'PUT',
        headers: {
          ...{ 'content-type': 'application/json', 'x-weir-request': '1' },
          'sec-fetch-site': site,
        },
      });
      const patch = { policies: { search: { rate: 9 } } };
      asked.end(JSON.stringify({ patch, expectedRevision: revision }));
      const [answer] = (await once(asked, 'response')) as [IncomingMessage];
      answer.resume();
      return answer.statusCode!;
    };
    expect([await put('same-site'), await put('cross-site'), await put('none')]).toEqual([
      403, 403, 403,
    ]);
    expect(await put('same-origin')).toBe(200);
  });

  it('unzips its files for a client that takes them only so', async () => {
    const { get } = await ops(platform);
    const zipped = await get('/ops/limits/');
    const plain = await get('/ops/limits/', { 'accept-encoding': 'identity' });
    const encodings = [zipped, plain].map(({ headers }) => headers.get('content-encoding'));
    expect(encodings).toEqual(['gzip', null]);
    const html = await plain.text();
    expect(html).toMatch(/^<!doctype html>/i);
    expect(plain.headers.get('content-length')).toBe(String(Buffer.byteLength(html)));
    expect(await zipped.text()).toBe(html);
    expect(plain.headers.get('vary')).toBe('accept-encoding');
  });

  it('tells the past of a series, and what is wrong with a question that has no answer', async () => {
    const clock = new ManualClock();
    const { get } = await ops(platform, { clock });
    await get('/search');
    await clock.advanceAsync(1000);
    const asked = async (query: string): Promise<unknown[]> => {
      const answer = await get(`/ops/limits/api/series${query}`);
      const { detail, name, horizon } = (await answer.json()) as Record<string, unknown>;
      return [answer.status, detail ?? `${String(name)} ${String(horizon)}`];
    };
    expect(await asked('')).toEqual([200, 'total seconds']);
    expect(await asked('?name=policy:search&horizon=minutes')).toEqual([
      ...[200, 'policy:search minutes'],
    ]);
    const horizons = 'There is no horizon of that name: seconds, minutes, hours.';
    expect(await asked('?horizon=days')).toEqual([400, horizons]);
    const unknown = 'Nothing is kept of that.';
    for (const name of ['policy:none', 'none', '__proto__', 'policy:']) {
      expect(await asked(`?name=${name}`)).toEqual([404, unknown]);
    }
    const noHours = await get('/ops/limits/api/series?name=store&horizon=hours');
    expect([noHours.status, await noHours.json()]).toEqual([200, null]);
  });

  it('reports the capacity of the last week', async () => {
    const clock = new ManualClock();
    const { get } = await ops(platform, { clock });
    await get('/search');
    await clock.advanceAsync(61_000);
    const report = (await (await get('/ops/limits/api/report')).json()) as CapacityReport;
    expect(report.toMs - report.fromMs).toBe(7 * 24 * 3_600_000);
    expect(report.rows[0]).toMatchObject({ kind: 'cluster', name: 'shop', limit: 1000 });
  });

  it('mutes a rule for some minutes, and says what is wrong with another wish', async () => {
    const clock = new ManualClock();
    const { send, app } = await ops(platform, { clock }, WRITABLE);
    const muted = vi.spyOn(app.get(RateLimitMonitor), 'mute');
    const mute = async (body: object): Promise<[number, Record<string, unknown>]> => {
      const answer = await send('POST', '/ops/limits/api/mute', body);
      return [answer.status, (await answer.json()) as Record<string, unknown>];
    };
    const untilMs = clock.epochMs(clock.now()) + 30 * 60_000;
    const wish = { rule: 'peak', series: 'policy:search', minutes: 30 };
    expect(await mute(wish)).toEqual([200, { done: true, untilMs }]);
    expect(muted).toHaveBeenLastCalledWith('peak', 'policy:search', new Date(untilMs));
    for (const minutes of [0, -1, '30', null, undefined, 7 * 24 * 60 + 1]) {
      const [status, { detail }] = await mute({ ...wish, minutes });
      expect([status, detail]).toEqual([400, 'Minutes are a number of up to 10080.']);
    }
    for (const rule of ['loud', undefined, {}]) {
      const [status, { detail }] = await mute({ ...wish, rule });
      expect(status).toBe(400);
      expect(detail).toMatch(/^rule: expected .*'peak'/);
    }
    const [status, { detail }] = await mute({ ...wish, series: 5 });
    // Else all of them would be quiet.
    expect([status, detail]).toEqual([400, 'A series is a name, or is left out for all of them.']);
    expect(muted).toHaveBeenCalledTimes(1 + 3);
  });

  it('is no part of the API that Swagger describes', async () => {
    const { app } = await ops(platform, {}, WRITABLE);
    const { paths } = SwaggerModule.createDocument(app, new DocumentBuilder().build());
    expect(Object.keys(paths)).toContain('/search');
    expect(Object.keys(paths).filter((path) => path.startsWith('/ops'))).toEqual([]);
  });

  it('refuses bodies that are too large, broken or no object', async () => {
    const { send } = await ops(platform, {}, WRITABLE, (app) => {
      if (platform === 'express')
        (app as NestExpressApplication).useBodyParser('json', { limit: '2mb' });
    });
    const large = await send('POST', '/ops/limits/api/validate', { text: 'x'.repeat(300_000) });
    expect(large.status).toBe(413);
    expect((await send('POST', '/ops/limits/api/validate', [1])).status).toBe(400);
    expect((await send('POST', '/ops/limits/api/validate', { text: 5 })).status).toBe(400);
  });

  it('judges a text before it is applied: what is wrong, and what it would change', async () => {
    const { send, get } = await ops(platform, {}, WRITABLE);
    const { document } = (await (await get('/ops/limits/api/config')).json()) as {
      document: { policies: { search: { rate: unknown } } };
    };
    const judge = async (
      text: string,
    ): Promise<{
      issues: { path: string; message: string; line?: number }[];
      diff: { changed: unknown[] };
    }> => (await (await send('POST', '/ops/limits/api/validate', { text })).json()) as never;
    document.policies.search.rate = -1;
    const wrong = await judge(JSON.stringify(document));
    expect(wrong.issues[0]!.path).toBe('policies.search.rate');
    document.policies.search.rate = 30;
    const right = await judge(JSON.stringify(document));
    expect(right.issues).toEqual([]);
    expect(right.diff.changed).toEqual([{ path: 'policies.search.rate', before: 3, after: 30 }]);
    expect((await judge('{ "policies": \n oops')).issues[0]).toMatchObject({ line: 2 });
    expect((await judge(`# as YAML\n${JSON.stringify(document)}`)).issues).toEqual([]);
  });

  it('judges and applies a patch as it does a text, however large the document is', async () => {
    const policy = { rate: 3, period: '1h', key: 'ip' } as const;
    const names = Array.from(
      { length: 2000 },
      (_, index) => [`policy-number-${index}`, policy] as const,
    );
    const policies = { ...Object.fromEntries(names), search: policy, page: policy };
    const { send, get, app } = await ops(platform, { policies }, WRITABLE);
    const document = await (await get('/ops/limits/api/config')).text();
    // More than Express reads of a body.
    expect(document.length).toBeGreaterThan(102_400);
    const judge = async (patch: object): Promise<unknown> =>
      (await send('POST', '/ops/limits/api/validate', { patch })).json();
    const patch = { policies: { search: { rate: 30 }, 'policy-number-7': null } };
    const { revision } = app.get(RateLimitConfig).current();
    expect(await judge(patch)).toEqual({
      ...{ revision, issues: [] },
      diff: {
        added: [],
        removed: [{ path: 'policies.policy-number-7', before: policy }],
        changed: [{ path: 'policies.search.rate', before: 3, after: 30 }],
      },
      effects: expect.arrayContaining([
        { isWarning: true, text: expect.stringMatching(/^policy-number-7 is removed/) as string },
      ]) as object[],
    });
    expect(await judge({})).toEqual({
      ...{ revision, issues: [], diff: { added: [], removed: [], changed: [] } },
    });
    expect(await judge({ policies: { search: { rate: -1 } } })).toMatchObject({
      issues: [{ path: 'policies.search.rate' }],
    });
    const without = await send('POST', '/ops/limits/api/validate', { patch: 'search' });
    expect(without.status).toBe(400);
    const body = { patch, expectedRevision: revision };
    expect((await send('PUT', '/ops/limits/api/config', body)).status).toBe(200);
    expect(Object.keys(app.get(RateLimitConfig).current().document.policies!)).toHaveLength(2001);
  });

  it('applies a change once, tells who did it, and rolls it back', async () => {
    const guard = {
      canActivate: (context: { switchToHttp(): { getRequest(): { user?: object } } }) => {
        context.switchToHttp().getRequest().user = { name: 'li' };
        return true;
      },
    };
    const { send, get, app } = await ops(platform, {}, { write: { guard: guard as never } });
    const config = app.get(RateLimitConfig);
    const { revision, document } = config.current();
    const changed = JSON.stringify({
      ...document,
      policies: { ...document.policies, search: { ...document.policies!.search, rate: 30 } },
    });
    const body = { text: changed, expectedRevision: revision };
    const written = await send('PUT', '/ops/limits/api/config', body);
    expect(written.status).toBe(200);
    expect(config.current().document.policies!.search!.rate).toBe(30);
    // Somebody else has the text of the revision before.
    const late = await send('PUT', '/ops/limits/api/config', body);
    expect(late.status).toBe(409);
    const conflict = (await late.json()) as {
      detail: string;
      others: { by: string; diff: object }[];
    };
    expect(conflict.detail).toMatch(/^Somebody was faster: revision \d+ by li is in force/);
    expect(conflict.others[0]).toMatchObject({ by: 'li', diff: { changed: [{ after: 30 }] } });
    const [last] = (await (await get('/ops/limits/api/history')).json()) as { by: string }[];
    expect(last!.by).toBe('li');
    const now = config.current().revision;
    const judge = (to: number) => send('POST', '/ops/limits/api/validate', { revision: to });
    expect(await (await judge(revision)).json()).toMatchObject({
      ...{ revision: now, issues: [] },
      effects: [
        { isWarning: false },
        { text: expect.stringMatching(/^search is altered: /) as string },
      ],
      diff: {
        ...{ added: [], removed: [] },
        changed: [{ path: 'policies.search.rate', before: 30, after: 3 }],
      },
    });
    expect(await (await judge(now)).json()).toMatchObject({ diff: { changed: [], added: [] } });
    expect((await judge(999)).status).toBe(404);
    const back = await send('POST', `/ops/limits/api/rollback/${revision}`, {
      expectedRevision: now,
    });
    expect(back.status).toBe(200);
    expect(config.current().document.policies!.search!.rate).toBe(3);
    const bad = await send('PUT', '/ops/limits/api/config', {
      patch: { policies: { search: { rate: -1 } } },
      expectedRevision: config.current().revision,
    });
    expect(bad.status).toBe(422);
    expect(((await bad.json()) as { issues: { path: string }[] }).issues[0]!.path).toBe(
      'policies.search.rate',
    );
  });

  it('shows and judges any revision that is kept, also one of long ago', async () => {
    const { send, get, app } = await ops(platform, {}, WRITABLE);
    const config = app.get(RateLimitConfig);
    const first = config.current();
    for (let rate = 10; rate < 45; rate++) {
      await config.update({ policies: { search: { rate } } }, { by: 'li' });
    }
    const at = async (revision: unknown): Promise<{ status: number; body: object }> => {
      const answer = await get(`/ops/limits/api/config/${String(revision)}`);
      return { status: answer.status, body: (await answer.json()) as object };
    };
    const { profile, document } = first;
    expect(await at(first.revision)).toMatchObject({
      ...{ status: 200, body: { revision: first.revision, kind: 'code', profile, document } },
    });
    const now = config.current();
    expect((await at(now.revision)).body).toMatchObject({ by: 'li', document: now.document });
    expect(await at(now.revision + 1)).toMatchObject({
      status: 404,
      body: { detail: `Revision ${now.revision + 1} is not kept, or not any more.` },
    });
    expect((await at('latest')).status).toBe(400);
    const judged = await send('POST', '/ops/limits/api/validate', { revision: first.revision });
    expect(await judged.json()).toMatchObject({
      diff: { changed: [{ path: 'policies.search.rate', before: 44, after: 3 }] },
    });
  });

  it('holds and releases a resource for the whole fleet, as a revision', async () => {
    const { send, get, app } = await ops(platform, {}, WRITABLE);
    const text = async (): Promise<string> => (await get('/page')).text();
    expect(await text()).toBe('page');
    const name = 'ShopController.page';
    expect(
      (await send('POST', `/ops/limits/api/resources/${name}`, { mode: 'forced', level: 4 }))
        .status,
    ).toBe(200);
    expect(await text()).toBe('a plain page');
    const { degradation } = app.get(RateLimitConfig).current().document;
    expect(degradation!.resources![name]).toEqual({ mode: 'forced', level: 4 });
    expect((await send('POST', `/ops/limits/api/resources/${name}`, { mode: 'auto' })).status).toBe(
      200,
    );
    expect((await send('POST', '/ops/limits/api/resources/none', { mode: 'auto' })).status).toBe(
      404,
    );
  });

  it('holds a resource that only other nodes degrade, if the fleet tells of it', async () => {
    const { send, app } = await ops(platform, {}, WRITABLE);
    const seen = { openNodes: 0, percent: undefined };
    const resources = [
      { ...seen, resource: 'elsewhere', breaker: undefined, phase: 'normal' as const },
      { ...seen, resource: 'protected', breaker: 'closed' as const, phase: undefined },
    ];
    const told = quietFleet({ resources });
    vi.spyOn(app.get(RateLimitMonitor), 'fleet').mockResolvedValue(told);
    const hold = async (name: string) =>
      (await send('POST', `/ops/limits/api/resources/${name}`, { mode: 'forced', level: 4 }))
        .status;
    expect([await hold('elsewhere'), await hold('protected'), await hold('none')]).toEqual([
      200, 404, 404,
    ]);
    const { degradation } = app.get(RateLimitConfig).current().document;
    expect(degradation!.resources).toEqual({ elsewhere: { mode: 'forced', level: 4 } });
  });

  it('says why a key is limited, and takes nothing for it', async () => {
    const { get, send, app } = await ops(platform);
    for (let n = 0; n < 4; n++) await get('/search');
    const look = (key: unknown): Promise<Response> => send('POST', '/ops/limits/api/look', { key });
    const seen = async (key: string): Promise<object> => {
      const answer = (await (await look(key)).json()) as { policies: { policy: string }[] };
      return answer.policies.find(({ policy }) => policy === 'search')!;
    };
    expect(await seen('127.0.0.1')).toMatchObject({ allowed: false, remaining: 0, limit: 3 });
    expect(await seen('10.0.0.1')).toMatchObject({ allowed: true, remaining: 3 });
    expect(app.get(RateLimiter).stats().policies.search).toMatchObject({ allowed: 3, denied: 1 });
    expect((await look('')).status).toBe(400);
    expect((await look('x'.repeat(600))).status).toBe(400);
    const floods = await Promise.all(Array.from({ length: 6 }, () => look('x')));
    expect(floods.map(({ status }) => status)).toContain(429);
  });

  it('agrees with its list: of a hash it knows what the list does, and of a stranger nothing', async () => {
    const { get, send, app } = await ops(platform);
    for (let n = 0; n < 12; n++) await get('/search');
    const listed = await until(
      async () => {
        const { limited } = (await (await get('/ops/limits/api/state')).json()) as PageFrame;
        return limited.find(({ kind }) => kind === 'key');
      },
      { what: 'the key in the list' },
    );
    expect(listed.who).toMatch(/^[0-9a-f]{8}$/);
    const look = async (key: string): Promise<Looked> =>
      (await (await send('POST', '/ops/limits/api/look', { key })).json()) as Looked;
    const denied = `search denied it ${listed.denied} times in the last minute: more than 3/h by this key.`;
    expect(await look(listed.who)).toEqual({
      said: `${denied} Only its hash is listed, so its bucket cannot be looked at: type the key itself.`,
      ...{ policies: [], others: [] },
    });
    // The key itself is found in the list by its hash.
    expect((await look('127.0.0.1')).said).toBe(denied);
    expect((await look('10.0.0.1')).said).toBe(
      'Nothing is known of it: it has not asked lately, or its key is another.',
    );
    await app.get(RateLimiter).tryAcquire({ policy: 'search', key: '10.0.0.2' });
    expect((await look('10.0.0.2')).said).toBe(
      'No policy turns it away now: it has tokens of all 2 that were asked.',
    );
  });

  it('finds a caller by a name, under every policy as its guard would and in every tier', async () => {
    const policies = {
      search: { rate: 9, period: '1h', key: 'ip' },
      page: { rate: 9, period: '1h', key: 'ip' },
      login: { rate: 2, period: '1h', key: 'user' },
      plan: { rate: 5, period: '1h', key: 'user', tiers: { vip: 3 } },
      all: { rate: 1, period: '1h', key: 'global' },
      pair: { rate: 1, period: '1h', key: ['user', 'route'] },
    } as const;
    const { send, app } = await ops(platform, { policies, ipv6Prefix: 48 });
    const limiter = app.get(RateLimiter);
    for (let n = 0; n < 3; n++) await limiter.tryAcquire({ policy: 'login', key: 'user:ada' });
    for (let n = 0; n < 3; n++) {
      await limiter.tryAcquire({ policy: 'login', key: 'anonymous:203.0.113.7' });
      await limiter.tryAcquire({ policy: 'plan', key: 'user:ada', tier: 'vip' });
    }
    await limiter.tryAcquire({ policy: 'all', key: 'global' });
    await limiter.tryAcquire({ policy: 'pair', key: '8:user:ada;6:C.list;' });
    const look = async (key: string) =>
      (await (await send('POST', '/ops/limits/api/look', { key })).json()) as Looked;
    const deniedTo = async (key: string) =>
      (await look(key)).policies
        .filter(({ allowed }) => !allowed)
        .map((one) => [one.policy, one.key, one.tier]);
    expect(await deniedTo('ada')).toEqual([
      ['login', 'user:ada', 'default'],
      ['plan', 'user:ada', 'vip'],
      ['all', 'global', 'default'],
    ]);
    // An address may be the name of a user, too, if one of that name has asked.
    await limiter.tryAcquire({ policy: 'login', key: 'user:203.0.113.7', cost: 2 });
    expect(await deniedTo('203.0.113.7')).toEqual([
      ['login', 'anonymous:203.0.113.7', 'default'],
      ['login', 'user:203.0.113.7', 'default'],
      ['all', 'global', 'default'],
    ]);
    await limiter.tryAcquire({ policy: 'login', key: 'anonymous:2001:db8:1::/48', cost: 2 });
    expect(await deniedTo('2001:db8:1:2::7')).toContainEqual([
      ...['login', 'anonymous:2001:db8:1::/48', 'default'],
    ]);
    expect((await look('ada')).others).toEqual([{ policy: 'pair', takes: "['user', 'route']" }]);
    expect(await deniedTo('ada C.list')).toContainEqual([
      ...['pair', '8:user:ada;6:C.list;', 'default'],
    ]);
  });

  it('asks of many policies those first that are listed for the key, and says how many it has not asked', async () => {
    const names = Array.from({ length: 30 }, (_, index) => `p${index}`);
    const policy = { rate: 2, period: '1h', key: 'user' } as const;
    const policies = { search: policy, ...Object.fromEntries(names.map((name) => [name, policy])) };
    const { send, app } = await ops(platform, { policies: { ...policies, page: policy } });
    const limiter = app.get(RateLimiter);
    for (let n = 0; n < 12; n++) await limiter.tryAcquire({ policy: 'p29', key: 'user:ada' });
    const look = async (key: string) =>
      (await (await send('POST', '/ops/limits/api/look', { key })).json()) as Looked;
    const found = await look('ada');
    expect(found.policies[0]).toMatchObject({ policy: 'p29', key: 'user:ada', allowed: false });
    expect(found.policies.slice(1).map((one) => one.policy)).toEqual(
      ['search', ...names].slice(0, 19),
    );
    expect(found.said).toMatch(/^p29 denied it .*\. 12 of 32 policies were not asked\.$/);
    expect((await look('bob')).said).toBe(
      'Nothing is known of it: it has not asked lately, or its key is another. 12 of 32 policies were not asked.',
    );
  });

  it('streams what happens, and lets the application close', async () => {
    const clock = new ManualClock();
    const { get, close } = await startOps(platform, { clock });
    const response = await get('/ops/limits/api/stream');
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect(response.headers.get('cache-control')).toBe('no-store, no-transform');
    expect(response.headers.get('x-accel-buffering')).toBe('no');
    // Else the application would wait for the connection when it closes.
    expect(response.headers.get('connection')).toBe('close');
    const frames = framesOf(response);
    const next = async (): Promise<PageFrame> => (await frames.next()).value as PageFrame;
    const first = await next();
    expect(first).toMatchObject({ seenFrom: 'api-1', storeKind: 'memory', canWrite: false });
    expect(first.policies.map(({ name }) => name).sort()).toEqual(['page', 'search']);
    expect(first.room!.note).toMatch(/^Yes: 100 of 900\/s \(90 % of the capacity\) are promised/);
    for (let n = 0; n < 5; n++) await (await get('/search')).text();
    await clock.advanceAsync(2000);
    const seen = [await next(), await next()].at(-1)!;
    expect(seen.state.series.find(({ name }) => name === 'policy:search')!.denied).toBeGreaterThan(
      0,
    );
    expect(seen.verdict.text).not.toBe('');
    expect(JSON.stringify(seen).length).toBeLessThan(12_000);
    const again = await get('/ops/limits/api/stream');
    await close();
    for await (const _ of framesOf(again)) void _;
  });

  it('ends a stream after five minutes, and asks its guard before the next one', async () => {
    const clock = new ManualClock();
    const door = { isOpen: true };
    const guard = { canActivate: () => door.isOpen };
    const { get } = await ops(platform, { clock }, { guard });
    const stream = await get('/ops/limits/api/stream');
    const ended = (async () => {
      for await (const _ of framesOf(stream)) void _;
      return 'ended';
    })();
    door.isOpen = false;
    await clock.advanceAsync(299_000);
    expect(await Promise.race([ended, nextTurn('streams')])).toBe('streams');
    await clock.advanceAsync(1000);
    expect(await ended).toBe('ended');
    expect((await get('/ops/limits/api/stream')).status).toBe(403);
    door.isOpen = true;
    const again = await get('/ops/limits/api/stream');
    expect(again.status).toBe(200);
    await again.body!.cancel();
  });

  it('makes one frame a second, also for a viewer that comes again and again, and for `api/state`', async () => {
    const clock = new ManualClock();
    const { get, app } = await ops(platform, { clock });
    const made = vi.spyOn(app.get(Dashboard, { strict: false }).frames, 'frame');
    const again = async (): Promise<void> => {
      const { body } = await get('/ops/limits/api/stream');
      await body!.cancel();
    };
    for (let n = 0; n < 20; n++) await again();
    const seen = (await (await get('/ops/limits/api/state')).json()) as PageFrame;
    expect(made).toHaveBeenCalledTimes(1);
    clock.advance(1000);
    const later = (await (await get('/ops/limits/api/state')).json()) as PageFrame;
    expect(later.nowMs - seen.nowMs).toBe(1000);
    await again();
    expect(made).toHaveBeenCalledTimes(2);
  });

  it('goes on when a frame cannot be made, and says so once a minute', async () => {
    const clock = new ManualClock();
    const { get, app } = await ops(platform, { clock });
    const lines = warnings();
    const made = vi.spyOn(app.get(Dashboard, { strict: false }).frames, 'frame');
    made.mockRejectedValue(new Error('no\nframe'));
    const frames = framesOf(await get('/ops/limits/api/stream'));
    await clock.advanceAsync(3000);
    expect(lines()).toEqual(['A frame of the page could not be made: "no\\nframe"']);
    await clock.advanceAsync(60_000);
    expect(lines()[1]).toMatch(/"no\\nframe" \(\d+ times since the last line\)$/);
    made.mockRestore();
    await clock.advanceAsync(1000);
    expect((await frames.next()).value).toMatchObject({ seenFrom: 'api-1' });
  });

  it('turns the 101st viewer away, and takes it when another has left', async () => {
    const { get, url } = await ops(platform);
    const stream = `${url}/ops/limits/api/stream`;
    const first = await fetch(stream);
    const others = await Promise.all(Array.from({ length: 99 }, () => fetch(stream)));
    expect(others.every(({ status }) => status === 200)).toBe(true);
    const late = await get('/ops/limits/api/stream');
    expect([late.status, late.headers.get('retry-after')]).toEqual([503, '10']);
    expect(((await late.json()) as { detail: string }).detail).toMatch(/^100 viewers are here/);
    await first.body!.cancel();
    const after = await until(async () => {
      const answer = await get('/ops/limits/api/stream');
      return answer.status === 200 ? answer : undefined;
    });
    await Promise.all([...others, after].map(({ body }) => body!.cancel()));
  });

  it('says that nothing is watched where the monitor is off, and starts all the same', async () => {
    const { get } = await ops(platform, { monitor: false });
    const answer = await get('/ops/limits/');
    expect(answer.status).toBe(503);
    expect(((await answer.json()) as { detail: string }).detail).toMatch(/`monitor: false`/);
  });

  it('is not limited itself', async () => {
    const { get } = await ops(platform, { apply: ['page'] });
    for (let n = 0; n < 5; n++) expect((await get('/ops/limits/api/state')).status).toBe(200);
  });
});

describe('the dashboard over HTTP/2', () => {
  it('streams, and takes changes from its own page, whose host is the authority there', async () => {
    const page = { path: 'ops/limits', guard: open, ...WRITABLE };
    const imports = [
      RateLimitModule.forRoot({ policies: { search: { rate: 3, period: '1h', key: 'ip' } } }),
      RateLimitDashboardModule.forRoot(page),
    ];
    const adapter = new FastifyAdapter({ http2: true });
    const { app, url, close } = await startHttp('fastify', { imports }, () => {}, adapter);
    const session = connectHttp2(url);
    onTestFinished(async () => {
      session.destroy();
      await close();
    });
    const put = async (origin: string): Promise<unknown> => {
      const stream = session.request({
        ...{ ':method': 'PUT', ':path': '/ops/limits/api/config', origin },
        ...{ 'content-type': 'application/json', 'x-weir-request': '1' },
      });
      const { revision } = app.get(RateLimitConfig).current();
      const patch = { policies: { search: { rate: 9 } } };
      stream.end(JSON.stringify({ patch, expectedRevision: revision }));
      const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
      stream.resume();
      return headers[':status'];
    };
    const warned = vi.spyOn(process, 'emitWarning');
    onTestFinished(() => warned.mockRestore());
    const stream = session.request({ ':path': '/ops/limits/api/stream' });
    const [first] = (await once(stream, 'data')) as [Buffer];
    expect(first.toString()).toBe(': weir\n\n');
    // HTTP/2 has no header for connections.
    expect(warned).not.toHaveBeenCalled();
    expect(await put('http://evil.example')).toBe(403);
    expect(await put(url)).toBe(200);
    expect(app.get(RateLimitConfig).current().document.policies!.search!.rate).toBe(9);
  });
});

describe('RateLimitDashboardModule.forRoot', () => {
  const guard = open;
  it.each([
    ['no guard', { path: 'ops' }, /guard is missing\. The dashboard shows who is limited/],
    ['a guard that is none', { path: 'ops', guard: {} }, /canActivate/],
    ['write without a guard', { path: 'ops', guard, write: {} }, /write\.guard is missing/],
    ['no path', { guard }, /path: expected/],
    ['a path with a parameter', { path: 'ops/:id', guard }, /path: expected/],
    [
      'an option that is misspelt',
      { path: 'ops', guard, maxViewer: 1 },
      /did you mean 'maxViewers'/,
    ],
    [
      'an origin with a path',
      { path: 'ops', guard, origins: ['https://a/b'] },
      /origins: expected/,
    ],
    ['viewers below 1', { path: 'ops', guard, maxViewers: 0 }, /maxViewers: expected/],
  ])('refuses %s', (_, input, message) => {
    expect(() => RateLimitDashboardModule.forRoot(input as never)).toThrow(message);
  });
});

describe('a path of the dashboard that a route has', () => {
  @Controller('ops')
  class OpsController {
    @Get('limits')
    limits(): string {
      return 'mine';
    }
  }
  @Controller({ path: 'ops', version: '1' })
  class VersionedController extends OpsController {}
  @Controller('ops/limits')
  class BesideController {
    @Get('mine')
    mine(): string {
      return 'mine';
    }
  }
  const beside = (controller: Type) => ({ module: class Others {}, controllers: [controller] });

  it.each(PLATFORMS)('is refused at start on %s, with the remedy', async (platform) => {
    const starting = startOps(platform, {}, { imports: [beside(OpsController)] });
    await expect(starting).rejects.toThrow(
      /\/ops\/limits is a route of OpsController\.limits already\. Give the dashboard another `path`/,
    );
    const twice = [RateLimitDashboardModule.forRoot({ path: 'ops/limits', guard: open })];
    await expect(startOps(platform, {}, { imports: twice })).rejects.toThrow(/is a route of/);
  });

  it('has a parameter, and answers in place of the page on Express if it is registered earlier', async () => {
    @Controller('ops')
    class ParameterController {
      @Get(':id')
      one(): string {
        return 'mine';
      }
    }
    const page = RateLimitDashboardModule.forRoot({ path: 'ops/limits', guard: open });
    const limits = RateLimitModule.forRoot({ policies: {} });
    const others = beside(ParameterController);
    const orders = [
      { imports: [limits, others, page] },
      { imports: [limits, page], controllers: [ParameterController] },
      { imports: [limits, page, others] },
    ];
    const told: string[] = [];
    for (const metadata of orders) {
      const { get, close } = await startHttp('express', metadata);
      const text = await (await get('/ops/limits/')).text();
      told.push(text === 'mine' ? text : 'the page');
      await close();
    }
    expect(told).toEqual(['mine', 'mine', 'the page']);
  });

  it('is none if it is of another version, or only begins like it', async () => {
    const imports = [beside(VersionedController), beside(BesideController)];
    const { get } = await ops('express', {}, { imports }, (app) => {
      app.enableVersioning({ type: VersioningType.URI });
    });
    expect(await (await get('/v1/ops/limits')).text()).toBe('mine');
    expect(await (await get('/ops/limits/mine')).text()).toBe('mine');
    expect((await get('/ops/limits/')).headers.get('content-type')).toMatch(/^text\/html/);
  });
});

describe('loopbackOnly', () => {
  it('lets this machine in, by its own name alone, and nobody through a proxy', async () => {
    const { get, url } = await ops('express', {}, { guard: loopbackOnly() });
    expect((await get('/ops/limits/')).status).toBe(200);
    for (const name of ['x-forwarded-for', 'x-forwarded-proto', 'via', 'forwarded']) {
      expect((await get('/ops/limits/', { [name]: '10.0.0.1' })).status).toBe(403);
    }
    // A name of somebody else that points here: fetch would not send it.
    const { port } = new URL(url);
    const status = await new Promise<string>((resolve) => {
      const socket = connect(Number(port), '127.0.0.1', () => {
        socket.write(
          'GET /ops/limits/ HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n',
        );
      });
      socket.once('data', (data) => resolve(data.toString().split('\r\n')[0]!));
    });
    expect(status).toMatch(/ 403 /);
  });

  it('is refused in production', () => {
    const before = process.env.NODE_ENV;
    process.env.NODE_ENV = 'production';
    try {
      expect(() => loopbackOnly()).toThrow(/NODE_ENV is production/);
    } finally {
      process.env.NODE_ENV = before;
    }
  });
});
