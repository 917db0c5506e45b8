import { ForbiddenException, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { InvalidArgumentError } from '../common/errors.js';
import { hostOf, rawRequest } from './answers.js';

/** Proxies add one of these: then the peer is the proxy, and says nothing about who asks. */
const FORWARDED = /^(?:forwarded|via|x-real-ip|x-forwarded-.*)$/;
const LOOPBACK_HOST = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i;
const LOOPBACK_PEER = /^(?:::ffff:)?127\.|^::1$/;

/** Whether a request asks for this machine by its own name. */
export const isLoopbackHost = (host: string | undefined): boolean => LOOPBACK_HOST.test(host ?? '');

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
      const isForwarded = Object.keys(headers).some((name) => FORWARDED.test(name));
      const isLocal = LOOPBACK_PEER.test(socket.remoteAddress ?? '');
      if (isLocal && !isForwarded && isLoopbackHost(hostOf(headers))) return true;
      throw new ForbiddenException('The dashboard answers requests from this machine only.');
    },
  };
}
