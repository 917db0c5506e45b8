import { loopbackOnly, sharedToken } from 'nestjs-weir/dashboard';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { keepScreenshot, openPage, seriousFindings } from '../support/browser.js';
import { PLATFORMS } from '../support/nest/http-apps.js';
import { stopAll } from '../support/processes.js';
import { open, startOps, type OpsApp } from './ops-app.js';

// The page's own files come from the build.
beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
afterAll(stopAll);

const opened: OpsApp[] = [];
const ops = async (...args: Parameters<typeof startOps>): Promise<OpsApp> => {
  const app = await startOps(...args);
  opened.push(app);
  return app;
};
afterEach(async () => {
  await Promise.all(opened.splice(0).map(({ close }) => close()));
});

const TOKEN = 'a-token-of-the-team';
const FOR_CHANGES = 'a-token-of-the-owners';
const PAGE = { accept: 'text/html' };

/** As a browser sends the form. */
function signIn(
  { url }: OpsApp,
  token: string,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${url}/ops/limits/sign-in`, {
    method: 'POST',
    headers: { origin: url, ...headers },
    body: new URLSearchParams({ token }),
    redirect: 'manual',
  });
}

const cookieOf = (response: Response): string => response.headers.get('set-cookie') ?? '';

describe.each(PLATFORMS)('sharedToken on %s', (platform) => {
  it('asks for the token in the place of the page, and keeps who knows it by a cookie', async () => {
    const app = await ops(platform, {}, { guard: sharedToken(TOKEN) });
    const asked = await app.get('/ops/limits/', PAGE);
    expect([asked.status, asked.headers.get('www-authenticate')]).toEqual([
      401,
      'Bearer realm="weir"',
    ]);
    expect(asked.headers.get('content-security-policy')).toMatch(/^default-src 'none'/);
    expect(await asked.text()).toMatch(/<form method="post" action="sign-in">/);

    const known = await signIn(app, TOKEN);
    expect([known.status, known.headers.get('location')]).toEqual([303, './']);
    const [cookie, ...rules] = cookieOf(known).split('; ');
    expect(rules).toEqual(['HttpOnly', 'SameSite=Strict']);
    expect(cookie).not.toContain(TOKEN);
    const page = await app.get('/ops/limits/', { ...PAGE, cookie: `a=b; ${cookie}` });
    expect([page.status, await page.text()]).toEqual([
      200,
      expect.stringContaining('id="app"') as string,
    ]);
    const name = cookie!.split('=')[0]!;
    for (const wrong of [`${name}=${TOKEN}`, `${name}=`, `${cookie}0`, `${name}`]) {
      expect((await app.get('/ops/limits/', { cookie: wrong })).status).toBe(401);
    }
  });

  it('lets programs in by a bearer token, and tells them what is missing', async () => {
    const { get } = await ops(platform, {}, { guard: sharedToken(TOKEN) });
    const state = '/ops/limits/api/state';
    expect((await get(state, { authorization: `Bearer ${TOKEN}` })).status).toBe(200);
    for (const authorization of ['Bearer wrong', 'Bearer', `Basic ${btoa(`ops:${TOKEN}`)}`]) {
      const refused = await get(state, { authorization });
      expect([refused.status, refused.headers.get('content-type')]).toEqual([
        401,
        'application/problem+json; charset=utf-8',
      ]);
      expect(await refused.json()).toMatchObject({
        detail: expect.stringMatching(/^Sign in/) as string,
      });
    }
  });

  it('gives nothing for a wrong token, or to a form on another site', async () => {
    const app = await ops(platform, {}, { guard: sharedToken(TOKEN) });
    for (const token of ['', 'wrong', `${TOKEN} `]) {
      const refused = await signIn(app, token);
      expect([refused.status, cookieOf(refused)]).toEqual([401, '']);
      expect(await refused.text()).toContain('That is not the token.');
    }
    const foreign: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { origin: 'null', 'sec-fetch-site': 'cross-site' },
    ];
    for (const headers of foreign) {
      const refused = await signIn(app, TOKEN, headers);
      expect([refused.status, cookieOf(refused)]).toEqual([403, '']);
    }
  });

  it('takes the form also where the framework reads no forms', async () => {
    const app = await ops(platform, {}, { guard: sharedToken(TOKEN) });
    // Express leaves such a body where it is, Fastify hands it over as a text.
    const headers = { 'content-type': 'text/plain' };
    expect((await signIn(app, TOKEN, headers)).status).toBe(303);
  });
});

describe('sharedToken', () => {
  it('asks for the token of changes apart, and a browser keeps both', async () => {
    const write = { guard: sharedToken(FOR_CHANGES) };
    const app = await ops('fastify', {}, { guard: sharedToken(TOKEN), write });
    const [toLook, toChange] = await Promise.all([signIn(app, TOKEN), signIn(app, FOR_CHANGES)]);
    const cookies = [toLook, toChange].map((one) => cookieOf(one).split(';')[0]!);
    const mute = async (cookie: string): Promise<number> => {
      const body = { rule: 'overload', minutes: 1 };
      return (await app.send('POST', '/ops/limits/api/mute', body, { cookie })).status;
    };
    expect(await mute(cookies[0]!)).toBe(401);
    expect(await mute(cookies[1]!)).toBe(401);
    expect(await mute(cookies.join('; '))).toBe(200);
  });

  it('marks the cookie as one for https alone, off this machine, and says so', async () => {
    const { app, url } = await ops('fastify', {}, { guard: sharedToken(TOKEN) });
    const inject = (app.getHttpAdapter().getInstance() as InjectingServer).inject.bind(
      app.getHttpAdapter().getInstance(),
    );
    const headers = { host: 'ops.example.com', origin: 'https://ops.example.com' };
    const payload = `token=${TOKEN}`;
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const at = { method: 'POST', url: '/ops/limits/sign-in', payload } as const;
    const known = await inject({ ...at, headers: { ...headers, ...form } });
    expect(String(known.headers['set-cookie'])).toMatch(/; SameSite=Strict; Secure$/);
    const page = await inject({ method: 'GET', url: '/ops/limits/sign-in', headers });
    expect(page.body).toMatch(/did not come by https/);
    expect(await (await fetch(`${url}/ops/limits/sign-in`)).text()).not.toMatch(/https/);
  });

  it('looks once more where a link of another site brought no cookie along', async () => {
    const { get } = await ops('express', {}, { guard: sharedToken(TOKEN) });
    const linked = await get('/ops/limits/', { ...PAGE, 'sec-fetch-site': 'cross-site' });
    expect(await linked.text()).toMatch(/<meta http-equiv="refresh" content="0"/);
  });

  it('leaves the form out where somebody else guards', async () => {
    const { get } = await ops('fastify', {}, { guard: loopbackOnly(), write: { guard: open } });
    expect((await get('/ops/limits/sign-in')).status).toBe(404);
  });

  it('refuses a secret that is short, and does not repeat it', () => {
    expect(() => sharedToken('short')).toThrow(/at least 16/);
    expect(() => sharedToken('short')).not.toThrow(/short/);
    expect(() => sharedToken(undefined)).toThrow(/at least 16/);
  });

  it('is a form in a browser, by which one comes to the page', async () => {
    const { url } = await ops('express', {}, { guard: sharedToken(TOKEN) });
    const { page, complaints } = await openPage(`${url}/ops/limits`);
    expect(await seriousFindings(page)).toEqual([]);
    await keepScreenshot(page, 'sign-in');
    await page.getByLabel('The token of this dashboard').fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('That is not the token.').waitFor();
    await page.getByLabel('The token of this dashboard').fill(TOKEN);
    await page.keyboard.press('Enter');
    await page.locator('.verdict').waitFor();
    expect(new URL(page.url()).pathname).toBe('/ops/limits/');
    // A browser tells of answers with 401, which is what they have to be.
    expect(complaints.filter((text) => !/status of 401/.test(text))).toEqual([]);
  });
});

interface InjectingServer {
  inject(request: object): Promise<{
    readonly headers: Readonly<Record<string, unknown>>;
    readonly body: string;
  }>;
}
