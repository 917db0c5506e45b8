import { type AnswerFacts } from '../../requests/transport.js';

/** The owner of the answers that a cache may keep and give for a request. */
export type Cacheability =
  /** The caller's own: the principal is part of the key. */
  | 'own'
  /** Everybody's: the key has no principal. */
  | 'shared'
  /** None: levels 1 and 2 are left out, and nothing is stored. */
  | 'none';

export interface CallerFacts {
  /** The request has Authorization, a cookie or a user. */
  readonly hasCredentials: boolean;
  /** The caller's name, where it is known. */
  readonly principal: string | undefined;
  /** Answers of the route are the same for all, by its options. */
  readonly shared: boolean;
}

/** A request of a caller without a name could get another caller's answer. */
export function cacheability({ hasCredentials, principal, shared }: CallerFacts): Cacheability {
  if (shared) return 'shared';
  if (principal !== undefined && principal !== '') return 'own';
  return hasCredentials ? 'none' : 'shared';
}

/** Whether an answer may be kept for others, or for later. */
export function mayStore({ status, setCookie, cacheControl }: Partial<AnswerFacts>): boolean {
  if (setCookie === true) return false;
  if (status !== undefined && status !== 200) return false;
  return cacheControl === undefined || !forbids(cacheControl);
}

/** `private="set-cookie"` is private as well. */
function forbids(cacheControl: string): boolean {
  return /(?:^|[\s,])(?:private|no-store)(?:$|[\s,=])/i.test(cacheControl);
}

/** How the answer is packed, and who may read it from another site: what is kept has neither. */
const NOT_IN_THE_BODY: readonly string[] = ['accept-encoding', 'origin'];

/** The first thing that an answer depends on and its key does not have; undefined if there is none. */
export function foreignVary(
  { vary }: Partial<AnswerFacts>,
  declared: readonly string[],
): string | undefined {
  if (vary === undefined) return undefined;
  const names = vary.split(',');
  return names
    .map((name) => name.trim())
    .find((name) => {
      const known = name.toLowerCase();
      return name !== '' && !NOT_IN_THE_BODY.includes(known) && !declared.includes(known);
    });
}

/**
 * The type that a copy of an answer would be sent without; undefined if it makes no difference. A text
 * that was sent as text would be a page, with whatever scripts are in it; what becomes JSON is JSON.
 */
export function foreignType(
  { contentType }: Partial<AnswerFacts>,
  value: unknown,
): string | undefined {
  if (contentType === undefined) return undefined;
  const isJson = /^\s*application\/json\b/i.test(contentType);
  return isJson && typeof value === 'object' ? undefined : contentType;
}
