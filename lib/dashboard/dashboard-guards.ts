import { createHash, timingSafeEqual } from 'node:crypto';
import { type IncomingMessage } from 'node:http';
import {
  ForbiddenException,
  UnauthorizedException,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { InvalidArgumentError } from '../common/errors.js';
import { rawRequest } from './answers.js';

const LEAST_TOKEN = 16;
/** Proxies add one of these: then the peer is the proxy, and says nothing about who asks. */
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip'];
const LOOPBACK_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;
const LOOPBACK_PEER = /^(?:::ffff:)?127\.|^::1$/;

/**
 * Lets requests in that come from this very machine; for development. A name other than localhost is refused, or a page
 * of somebody else could point its own name here and read along.
 */
export function loopbackOnly(): CanActivate {
  if (process.env.NODE_ENV === 'production') {
    throw new InvalidArgumentError(
      'guard',
      'loopbackOnly()',
      'a guard that knows its users, as NODE_ENV is production',
    );
  }
  return {
    canActivate(context: ExecutionContext): boolean {
      const { headers, socket } = rawRequest(context);
      const isForwarded = FORWARDED.some((name) => headers[name] !== undefined);
      const isLocal = LOOPBACK_PEER.test(socket.remoteAddress ?? '');
      if (isLocal && !isForwarded && LOOPBACK_HOST.test(headers.host ?? '')) return true;
      throw new ForbiddenException('The dashboard answers requests from this machine only.');
    },
  };
}

const COOKIE = 'weir-token';

/**
 * Lets requests in that know a word, as the password of HTTP's own sign-in (any user name), as a bearer token or as
 * the cookie `weir-token`. Browsers ask for it by themselves.
 */
export function sharedToken(token: string | undefined): CanActivate {
  if (typeof token !== 'string' || token.length < LEAST_TOKEN) {
    const expectation = `a secret of at least ${LEAST_TOKEN} characters`;
    // Not the value: it may be a secret, only a short one.
    throw new InvalidArgumentError('sharedToken', typeof token, expectation);
  }
  const wanted = digestOf(token);
  return {
    canActivate(context: ExecutionContext): boolean {
      const given = tokensIn(rawRequest(context));
      if (given.some((one) => timingSafeEqual(digestOf(one), wanted))) return true;
      const response = context.switchToHttp().getResponse<HeaderSetter>();
      const ask = 'Basic realm="weir", charset="UTF-8"';
      if (response.header !== undefined) response.header('www-authenticate', ask);
      else response.setHeader?.('www-authenticate', ask);
      throw new UnauthorizedException('Sign in with the token of the dashboard as the password.');
    },
  };
}

interface HeaderSetter {
  header?(name: string, value: string): unknown;
  setHeader?(name: string, value: string): unknown;
}

function tokensIn({ headers }: IncomingMessage): string[] {
  const [scheme = '', credentials = ''] = (headers.authorization ?? '').split(' ');
  const found: string[] = [];
  if (/^bearer$/i.test(scheme)) found.push(credentials);
  if (/^basic$/i.test(scheme)) {
    const text = Buffer.from(credentials, 'base64').toString();
    found.push(text.slice(text.indexOf(':') + 1));
  }
  for (const cookie of (headers.cookie ?? '').split(';')) {
    const [name, value = ''] = cookie.trim().split('=');
    if (name === COOKIE) found.push(value);
  }
  return found;
}

/** Of equal length, whatever was given. */
const digestOf = (text: string): Buffer => createHash('sha256').update(text).digest();
