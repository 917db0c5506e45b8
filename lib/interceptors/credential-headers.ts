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

/** Names that begin alike, by the next letter. */
class Letter {
  readonly next: (Letter | undefined)[] = new Array<Letter | undefined>(128).fill(undefined);
  isEnd = false;
  /** Whatever follows. */
  isStart = false;
}

const NAME = /^[\w!#$%&'+.^`|~-]+\*?$/;

/**
 * Tells headers that say who is calling from others. Asked for each header of each request, so it goes
 * letter by letter: most names are done with the first, and no text is made of any.
 */
export class CredentialHeaders {
  constructor(
    more: readonly string[] = [],
    private readonly first = lettersOf([...CREDENTIAL_HEADERS, ...more]),
    private readonly except: readonly string[] = [],
  ) {}

  /** All but those that the key of an answer has. */
  without(names: readonly string[]): CredentialHeaders {
    return new CredentialHeaders([], this.first, names);
  }

  /** In whatever case it comes. */
  has(name: string): boolean {
    let letter: Letter | undefined = this.first;
    for (let i = 0; i < name.length && !letter.isStart; i++) {
      letter = letter.next[folded(name, i)];
      if (letter === undefined) return false;
    }
    if (!letter.isStart && !letter.isEnd) return false;
    return this.except.length === 0 || !this.except.includes(name.toLowerCase());
  }
}

function lettersOf(names: readonly string[]): Letter {
  const first = new Letter();
  for (const name of names) {
    const text = name.replace('*', '');
    let letter = first;
    for (let i = 0; i < text.length; i++) letter = letter.next[folded(text, i)] ??= new Letter();
    if (name.endsWith('*')) letter.isStart = true;
    else letter.isEnd = true;
  }
  return first;
}

export function checkCredentialHeaders(at: string, names: unknown): readonly string[] {
  const isName = (name: unknown): boolean => typeof name === 'string' && NAME.test(name);
  if (Array.isArray(names) && names.every(isName)) return names as string[];
  throw new InvalidArgumentError(at, names, "a list of headers such as 'x-acme-token', 'x-acme-*'");
}

/** Letters without their case; the other signs of header names stay apart from them. */
const folded = (text: string, at: number): number => text.charCodeAt(at) | 0x20;
