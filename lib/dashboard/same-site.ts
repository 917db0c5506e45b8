import { type IncomingMessage } from 'node:http';
import { Problem } from './answers.js';

/**
 * Refuses what another site could have made a browser send. A form or an image of another site can send neither JSON nor
 * a header of its own, and says where it comes from.
 */
export function mustBeSameSite({ headers }: IncomingMessage, origins: readonly string[]): void {
  if (!/^application\/json\b/i.test(headers['content-type'] ?? '')) {
    throw new Problem(403, 'Changes are sent as application/json.');
  }
  if (headers['x-weir-request'] !== '1') {
    throw new Problem(403, 'Changes are sent with the header x-weir-request: 1.');
  }
  const { origin, host } = headers;
  if (origin === undefined) {
    if (headers['sec-fetch-site'] === 'same-origin') return;
    throw new Problem(403, 'Changes come from the page itself: there is no Origin.');
  }
  const isOwn = URL.canParse(origin) && new URL(origin).host === host;
  if (isOwn || origins.includes(origin)) return;
  throw new Problem(403, 'Changes come from the page itself, not from another site.');
}
