/**
 * Headers that mark a request as a caller's own, even if the caller has no name; `*` stands for any beginning or any
 * end. Wide on purpose: an answer that is not kept costs a little, one that is given to another costs a lot.
 */
export const CREDENTIAL_HEADERS: readonly string[] = [
  // Headers of browsers and clients.
  ...['authorization', '*-authorization', 'cookie', 'dpop', 'token', '*-token', 'jwt', '*-jwt'],
  ...['api-key', '*-api-key', 'apikey', '*-apikey', 'api_key', '*-app-key', '*-access-key'],
  ...['*-subscription-key', '*-rapidapi-key', '*-functions-key', '*-secret', 'password'],
  ...['*-password', '*-pass', 'auth', 'auth-*', 'x-auth', 'x-auth-*', 'authentication'],
  ...['*-authentication', 'x-oauth*', 'bearer', '*-bearer', 'x-jwt-*', 'credential*'],
  ...['x-credential*', 'signature', '*-signature', 'session', 'x-session-*', '*-session'],
  ...['*-session-id', 'sessionid', 'session-id', 'sid', 'x-sid', '*-uid', 'x-login', 'x-email'],
  ...['user', 'userid', '*-userid', 'user-id', '*-user-id', '*-ticket', 'x-sso*', 'x-saml*'],
  // In whose name, and of which customer.
  ...['x-act-as', 'x-on-behalf-of', 'x-impersonate*', 'tenant', 'x-tenant*', '*-tenant'],
  ...['*-tenant-id', 'tenantid', 'x-member*', 'x-profile*', 'x-role*'],
  ...['x-account*', 'x-org', 'x-org-*', 'x-organization*', 'x-company*', 'x-customer*'],
  ...['x-workspace*', 'x-client-id'],
  // Headers of proxies about a caller that they have let in.
  ...['x-remote-*', 'remote-email', 'remote-groups', 'remote-name', 'x-user-*', '*-user'],
  ...['*-username', '*-userinfo'],
  ...['*-identity', '*-principal', '*-subject', '*-jwt-assertion', 'x-authenticated-*'],
  ...['x-forwarded-email', 'x-forwarded-groups', 'x-forwarded-preferred-username'],
  ...['x-forwarded-client-cert', 'x-client-cert*', 'x-ssl-client-*', 'ssl-client-*'],
  ...['client-cert*', 'x-spiffe-id', 'x-consumer-*', 'x-authentik-*', 'tailscale-user-*'],
  ...['x-amzn-oidc-*', 'x-amzn-mtls-*', 'cf-access-*', 'x-goog-iap-*', 'x-goog-authenticated-*'],
  ...['x-ms-client-principal*', 'x-ms-token-*'],
];

/** Names that begin alike, or end alike, by the next letter. */
class Letter {
  readonly next: (Letter | undefined)[] = new Array<Letter | undefined>(128).fill(undefined);
  isEnd = false;
  /** Any text may follow. */
  isStart = false;
}

/** Names as they are read from their first letter, and those of any beginning from their last. */
interface Letters {
  readonly forwards: Letter;
  readonly backwards: Letter;
}

/**
 * Knows the headers that name a caller. It is called for each header of each request, so it goes
 * letter by letter: most names are done with the first and the last, and no text is made of any.
 */
export class CredentialHeaders {
  constructor(
    more: readonly string[] = [],
    private readonly letters = lettersOf([...CREDENTIAL_HEADERS, ...more]),
    private readonly except: readonly string[] = [],
  ) {}

  /** All but those that the key of an answer has. */
  without(names: readonly string[]): CredentialHeaders {
    return new CredentialHeaders([], this.letters, names);
  }

  /** In whatever case it comes. */
  has(name: string): boolean {
    const { forwards, backwards } = this.letters;
    if (!beginsIn(forwards, name) && !endsIn(backwards, name)) return false;
    return this.except.length === 0 || !this.except.includes(name.toLowerCase());
  }
}

function beginsIn(first: Letter, name: string): boolean {
  let letter: Letter | undefined = first;
  for (let i = 0; i < name.length && !letter.isStart; i++) {
    letter = letter.next[folded(name, i)];
    if (letter === undefined) return false;
  }
  return letter.isStart || letter.isEnd;
}

function endsIn(last: Letter, name: string): boolean {
  let letter: Letter | undefined = last;
  for (let i = name.length - 1; i >= 0 && !letter.isStart; i--) {
    letter = letter.next[folded(name, i)];
    if (letter === undefined) return false;
  }
  return letter.isStart;
}

function lettersOf(names: readonly string[]): Letters {
  const letters: Letters = { forwards: new Letter(), backwards: new Letter() };
  for (const name of names) {
    const isAnyBeginning = name.startsWith('*');
    const signs = [...name.replace('*', '')];
    let letter = isAnyBeginning ? letters.backwards : letters.forwards;
    for (const sign of isAnyBeginning ? signs.reverse() : signs) {
      letter = letter.next[folded(sign, 0)] ??= new Letter();
    }
    if (isAnyBeginning || name.endsWith('*')) letter.isStart = true;
    else letter.isEnd = true;
  }
  return letters;
}

/** Letters without their case; the other signs of header names stay apart from them. */
const folded = (text: string, at: number): number => text.charCodeAt(at) | 0x20;
