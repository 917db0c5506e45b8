import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { type TLSSocket } from 'node:tls';
import {
  Catch,
  Controller,
  Get,
  Post,
  Req,
  Res,
  UnauthorizedException,
  VERSION_NEUTRAL,
  type ArgumentsHost,
  type CanActivate,
  type ExceptionFilter,
  type ExecutionContext,
  type Type,
} from '@nestjs/common';
import { InvalidArgumentError } from '../common/errors.js';
import { SkipRateLimit } from '../limits/rate-limit.decorators.js';
import {
  begin,
  fieldOf,
  hideFromSwagger,
  hostOf,
  isFromItsPage,
  RequestProblem,
  rawRequest,
  rawResponse,
  redirectToFolder,
  sendProblem,
  type AnyRequest,
  type AnyResponse,
} from './answers.js';
import { type DashboardOptions } from './dashboard.options.js';
import { isLoopbackHost } from './loopback-only.js';

const LEAST_TOKEN = 16;
const COOKIE_PURPOSE = 'weir dashboard';
const COOKIE_NAME_LENGTH = 8;

/** Whoever is refused by a token that is shared may sign in. */
export class SignInNeeded extends UnauthorizedException {
  constructor() {
    super('Sign in with the token of the dashboard, or send it as `authorization: Bearer …`.');
  }
}

/**
 * Lets requests in that know a word: browsers by a cookie, which they get for it by a small form, programs by a bearer
 * token. The dashboard has the form where this is one of its guards.
 */
export function sharedToken(token: string | undefined): CanActivate {
  return new SharedToken(token);
}

export class SharedToken implements CanActivate {
  private readonly token: Buffer;
  /** No word itself: whoever finds the cookie knows no token that opens other doors. */
  private readonly ticket: string;
  /** The page's and the changes' may be two, and a browser has both. */
  private readonly cookie: string;

  constructor(token: unknown) {
    if (typeof token !== 'string' || token.length < LEAST_TOKEN) {
      const expectation = `a secret of at least ${LEAST_TOKEN} characters`;
      // Not the value: it may be a secret, only a short one.
      throw new InvalidArgumentError('sharedToken', typeof token, expectation);
    }
    this.token = digestOf(token);
    this.ticket = createHmac('sha256', token).update(COOKIE_PURPOSE).digest('hex');
    this.cookie = `weir-${digestOf(this.ticket).toString('hex').slice(0, COOKIE_NAME_LENGTH)}`;
  }

  canActivate(context: ExecutionContext): boolean {
    if (this.isSignedIn(rawRequest(context).headers)) return true;
    throw new SignInNeeded();
  }

  isToken(given: string): boolean {
    return timingSafeEqual(digestOf(given), this.token);
  }

  /** For the folder that it is given in, which only the browser knows in front of proxies. */
  cookieFor(headers: IncomingHttpHeaders): string {
    const secure = isLoopbackHost(hostOf(headers)) ? '' : '; Secure';
    return `${this.cookie}=${this.ticket}; HttpOnly; SameSite=Strict${secure}`;
  }

  private isSignedIn({ authorization = '', cookie = '' }: IncomingHttpHeaders): boolean {
    const [scheme = '', credentials = ''] = authorization.split(' ');
    if (/^bearer$/i.test(scheme) && this.isToken(credentials)) return true;
    return cookie.split(';').some((one) => {
      const [name, value = ''] = one.trim().split('=');
      return name === this.cookie && timingSafeEqual(digestOf(value), digestOf(this.ticket));
    });
  }
}

/** Of equal length, whatever was given. */
const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Those of the dashboard's guards for which a browser can sign in. */
export function sharedTokensOf({ guard, write }: DashboardOptions): SharedToken[] {
  return [guard, write?.guard].filter((one) => one instanceof SharedToken);
}

/** Answers in the place of the page with the form, and of data with a sentence. */
@Catch(SignInNeeded)
export class SignInFilter implements ExceptionFilter<SignInNeeded> {
  catch({ message }: SignInNeeded, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<AnyRequest>();
    const raw = request.raw ?? request;
    const answer = rawResponse(http.getResponse<AnyResponse>());
    const isPage = raw.method === 'GET' && /\btext\/html\b/.test(raw.headers.accept ?? '');
    if (!isPage) {
      sendProblem(answer, new RequestProblem(401, message), { 'www-authenticate': BEARER });
    } else if (!redirectToFolder(raw, answer)) sendForm(raw, answer, 401);
  }
}

/** Browsers ask for no password by themselves, as they would for `Basic`. */
const BEARER = 'Bearer realm="weir"';

/** The form, where somebody comes to sign in; nobody guards it. A class for each path, as the page's. */
export function signInController(path: string, tokens: readonly SharedToken[]): Type {
  @Controller({ path, version: VERSION_NEUTRAL })
  @SkipRateLimit()
  class RateLimitDashboardSignInController {
    @Get('sign-in')
    form(@Req() request: AnyRequest, @Res() response: AnyResponse): void {
      sendForm(request.raw ?? request, rawResponse(response), 200);
    }

    @Get('sign-in.css')
    style(@Res() response: AnyResponse): void {
      const answer = rawResponse(response);
      begin(answer, 200, { 'content-type': 'text/css; charset=utf-8' });
      answer.end(STYLE);
    }

    @Get('sign-in.svg')
    icon(@Res() response: AnyResponse): void {
      const answer = rawResponse(response);
      begin(answer, 200, { 'content-type': 'image/svg+xml' });
      answer.end(ICON);
    }

    @Post('sign-in')
    async signIn(@Req() request: AnyRequest, @Res() response: AnyResponse): Promise<void> {
      const raw = request.raw ?? request;
      const answer = rawResponse(response);
      if (!isFromItsPage(raw.headers)) {
        sendProblem(answer, new RequestProblem(403, 'The form is sent from its own page.'));
        return;
      }
      const given = await fieldOf(request, 'token');
      const known = tokens.find((one) => one.isToken(given));
      if (known === undefined) return sendForm(raw, answer, 401, 'That is not the token.');
      begin(answer, 303, { location: './', 'set-cookie': known.cookieFor(raw.headers) });
      answer.end();
    }
  }
  hideFromSwagger(RateLimitDashboardSignInController);
  return RateLimitDashboardSignInController;
}

const UNSAFE =
  'This page did not come by https, and then browsers keep no sign-in, except from localhost.';

function sendForm(
  request: IncomingMessage,
  answer: ServerResponse,
  status: number,
  said = '',
): void {
  const { headers } = request;
  // A link on another site brings no cookie of this one along; the page itself does.
  if (headers['sec-fetch-site'] === 'cross-site' && request.method === 'GET') {
    return sendHtml(answer, 200, '<meta http-equiv="refresh" content="0" />', '');
  }
  const sentences = [said, isKept(request) ? '' : UNSAFE].filter((one) => one !== '');
  const told = sentences.map((one) => `<p role="alert">${one}</p>`).join('');
  sendHtml(
    answer,
    status,
    '<link rel="icon" href="sign-in.svg" /><link rel="stylesheet" href="sign-in.css" />',
    `<form method="post" action="sign-in"><h1><img src="sign-in.svg" width="22" height="22" alt="" /> weir</h1>${told}
<label for="token">The token of this dashboard</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus />
<button>Sign in</button></form>`,
  );
}

function isKept({ headers, socket }: IncomingMessage): boolean {
  const isSafe = (socket as TLSSocket).encrypted || headers['x-forwarded-proto'] === 'https';
  return isSafe || isLoopbackHost(hostOf(headers));
}

function sendHtml(answer: ServerResponse, status: number, head: string, body: string): void {
  begin(answer, status, {
    'content-type': 'text/html; charset=utf-8',
    // Without a referrer at all browsers hide where a form was sent from.
    'referrer-policy': 'same-origin',
    ...(status === 401 && { 'www-authenticate': BEARER }),
  });
  answer.end(`<!doctype html><html lang="en"><head><meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<meta name="color-scheme" content="light dark" /><title>weir: sign in</title>${head}</head>
<body><main>${body}</main></body></html>`);
}

const STYLE = `
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { margin: 0; background: light-dark(#f4f7fa, #0a1118); color: light-dark(#10202f, #e7eef5); }
main { max-width: 320px; margin: 18vh auto 0; padding: 0 20px; }
form { display: grid; gap: 10px; padding: 24px; border-radius: 12px;
  background: light-dark(#fff, #111b25); border: 1px solid light-dark(#e2e8ef, #1e2c3a); }
h1 { display: flex; gap: 8px; align-items: center; margin: 0; font-size: 18px; }
p { margin: 0; color: light-dark(#b5341c, #ff9a82); }
input, button { font: inherit; padding: 8px 10px; border-radius: 8px; border: 1px solid light-dark(#8a99a8, #566778); }
button { border: 0; background: #0b5fb8; color: #fff; cursor: pointer; }
`;

const WAVE = 'c2.5 0 2.5 2 5 2s2.5-2 5-2 2.5 2 5 2 2.5-2 5-2';
/** That of the page, which is behind the guard. */
const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#1f77d0"
 stroke-width="2.4" stroke-linecap="round"><path d="M2 6${WAVE}"/><path d="M2 12${WAVE}" opacity=".7"/>
<path d="M2 18${WAVE}" opacity=".4"/></svg>`;
