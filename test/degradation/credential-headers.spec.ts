import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { CREDENTIAL_HEADERS, CredentialHeaders } from '../../lib/degradation/credential-headers.js';
import { root } from '../setup/ensure-built.js';

describe('headers that say who is calling', () => {
  const known = new CredentialHeaders(['X-Acme-Pass', 'x-corp-*', '*-Badge']);

  it.each([
    ...['Authorization', 'COOKIE', 'x-api-key', 'X-Session-Id', 'x-session-', 'X-Session'],
    ...['x-acme-pass', 'X-ACME-PASS', 'X-Corp-Anything', 'x-corp-', 'door-BADGE', '-badge'],
    ...['X-Acme-Token', 'x-shopify-access-token', 'X-Tenant-ID', 'x-webauth-user', 'x-wso2-jwt'],
    ...['sid', 'auth', 'Authentication', 'bearer', 'user', 'X-UserId', 'X-Password', 'api_key'],
    ...['tenant', 'x-credentials', 'X-Hub-Signature', 'Ocp-Apim-Subscription-Key', 'Remote-Email'],
  ])('%s', (name) => expect(known.has(name)).toBe(true));

  it.each([
    ...['', 'host', 'accept', 'accept-language', 'content-type', 'user-agent', 'x-forwarded-for'],
    ...['x-request-id', 'authorizations', 'authorizatio', 'x-acme-passes', 'x-corp', 'x-sessions'],
    ...['author', 'x-author', 'remote-addr', 'x-users'],
    ...[
      'badge',
      'x-badges',
      'x-tokens',
      'user-agents',
      'x-real-ip',
      'if-none-match',
      'idempotency-key',
    ],
  ])('not %j', (name) => expect(known.has(name)).toBe(false));

  it('not those that are part of a key', () => {
    const less = new CredentialHeaders().without(['x-session-id']);
    expect([less.has('X-Session-Id'), less.has('X-Session-Ids')]).toEqual([false, true]);
  });

  it('are found in whatever case they come', () => {
    const cased = fc
      .constantFrom(...CREDENTIAL_HEADERS)
      .chain((name) =>
        fc
          .array(fc.boolean(), { minLength: name.length, maxLength: name.length })
          .map((upper) =>
            [...name].map((sign, i) => (upper[i] ? sign.toUpperCase() : sign)).join(''),
          ),
      );
    fc.assert(fc.property(cased, (name) => known.has(name.replace('*', 'any'))));
  });

  it('are all in the documentation', () => {
    const page = readFileSync(join(root, 'docs/degradation-caches.md'), 'utf8');
    expect(CREDENTIAL_HEADERS.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });
});
