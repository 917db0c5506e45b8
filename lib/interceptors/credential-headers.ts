import { InvalidArgumentError } from '../common/errors.js';

/**
 * What says that a request is somebody's, even if nobody knows whose; `*` stands for any end. Wide on
 * purpose: an answer that is not kept costs a little, one that is given to another costs a lot.
 */
export const CREDENTIAL_HEADERS: readonly string[] = [
  // What browsers and clients send.
  ...['authorization', 'proxy-authorization', 'cookie', 'api-key', 'apikey', 'private-token'],
  ...['x-api-key', 'x-api-token', 'x-apikey', 'x-auth-*', 'x-authorization', 'x-access-token'],
  ...['x-token', 'x-id-token', 'x-jwt-*', 'x-session', 'x-session-*', 'x-sid', 'x-vault-token'],
  // What proxies say of a caller that they have let in.
  ...[
    'remote-user',
    'x-remote-*',
    'x-user',
    'x-user-*',
    'x-username',
    'x-email',
    'x-authenticated-*',
  ],
  ...[
    'x-forwarded-user',
    'x-forwarded-email',
    'x-forwarded-groups',
    'x-forwarded-preferred-username',
  ],
  ...['x-forwarded-access-token', 'x-forwarded-client-cert', 'x-client-cert*', 'x-ssl-client-*'],
  ...['ssl-client-*', 'client-cert*', 'x-amzn-oidc-*', 'x-amzn-mtls-*', 'cf-access-*'],
  ...['x-goog-iap-*', 'x-goog-authenticated-*', 'x-ms-client-principal*', 'x-ms-token-*'],
];

interface Known {
  readonly text: string;
  readonly isStart: boolean;
}

const NAME = /^[\w!#$%&'+.^`|~-]+\*?$/;

/** Tells headers that say who is calling from others, without making a text of any of them. */
export class CredentialHeaders {
  /** By the first letter: most headers have none of these. */
  private readonly known: (readonly Known[] | undefined)[] = [];

  constructor(
    more: readonly string[] = [],
    /** Those that the key of an answer has. */
    private readonly except: readonly string[] = [],
  ) {
    for (const name of [...CREDENTIAL_HEADERS, ...more]) {
      const isStart = name.endsWith('*');
      const text = (isStart ? name.slice(0, -1) : name).toLowerCase();
      const letter = folded(text, 0);
      this.known[letter] = [...(this.known[letter] ?? []), { text, isStart }];
    }
  }

  /** In whatever case it comes. */
  has(name: string): boolean {
    const known = this.known[folded(name, 0)];
    if (known === undefined) return false;
    for (const { text, isStart } of known) {
      const mayBe = isStart ? name.length >= text.length : name.length === text.length;
      if (mayBe && beginsWith(name, text)) return !this.except.includes(name.toLowerCase());
    }
    return false;
  }
}

export function checkCredentialHeaders(at: string, names: unknown): readonly string[] {
  const isName = (name: unknown): boolean => typeof name === 'string' && NAME.test(name);
  if (Array.isArray(names) && names.every(isName)) return names as string[];
  throw new InvalidArgumentError(at, names, "a list of headers such as 'x-acme-token', 'x-acme-*'");
}

function beginsWith(name: string, text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    if (folded(name, i) !== folded(text, i)) return false;
  }
  return true;
}

/** Letters without their case; the other signs of header names stay apart from them. */
const folded = (text: string, at: number): number => text.charCodeAt(at) | 0x20;
