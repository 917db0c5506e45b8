import { type ExecutionContext } from '@nestjs/common';
import { InvalidArgumentError } from '../common/errors.js';
import { digestOf } from '../common/ids.js';
import { isStrayPromise } from '../common/promises.js';
import { principalName } from '../limits/key-resolver.js';
import { type RoutePlace } from '../limits/route-place.js';
import { type RequestIdentity, type Substitutes } from '../requests/transport.js';
import { cacheability } from './core/cacheability.js';
import { degradeKey } from './core/degrade-key.js';
import { type CredentialHeaders } from './credential-headers.js';
import { type WarmUpEntry, type DegradeOptions } from './degrade-options.js';

export interface AnswerKeySettings {
  /** The service that the answers belong to, where several share a store. */
  readonly service: string | undefined;
  readonly place: RoutePlace;
  readonly options: DegradeOptions;
  /** The module's function for the caller's name. */
  readonly user: ((context: ExecutionContext) => unknown) | undefined;
  readonly credentials: CredentialHeaders;
  /** Called for a request with credentials whose caller has no name. */
  readonly unnamed?: () => void;
}

/** A caller that has shown credentials, but has no name. */
const NOBODY_KNOWS = Symbol('nobody knows');

/** Names the answers of a route in the caches, each for its caller. */
export class AnswerKeys {
  /** The headers that are part of the key. */
  readonly vary: readonly string[];
  private readonly unknown: CredentialHeaders;

  constructor(private readonly settings: AnswerKeySettings) {
    const { options, place, credentials } = settings;
    const declared = (options.vary ?? []).map((name) => name.toLowerCase());
    this.vary = place.isByHost ? [...new Set([...declared, 'host'])] : declared;
    this.unknown = credentials.without(this.vary);
  }

  /**
   * Cheap, and the same for the same request of the same caller; undefined if its answer is not to be kept. A caller
   * without a name may still turn out to have credentials.
   */
  fingerprintOf(context: ExecutionContext, transport: Substitutes): string | undefined {
    try {
      const principal = this.nameOf(context, transport);
      if (principal === NOBODY_KNOWS) {
        this.settings.unnamed?.();
        return undefined;
      }
      let fingerprint = transport.fingerprintOf(context);
      for (const name of this.vary) fingerprint += `\n${transport.varyingHeaderOf(context, name)}`;
      // No fingerprint begins with a number and a colon.
      return principal === undefined
        ? fingerprint
        : `${principal.length}:${principal}${fingerprint}`;
    } catch {
      // A body that is no JSON, or a function of the application that fails.
      return undefined;
    }
  }

  /** Whether it is known whose the answer is. Called where one is due: it looks at each header. */
  isOfKnownCaller(context: ExecutionContext, transport: Substitutes): boolean {
    if (this.principalOf(context, transport) !== NOBODY_KNOWS) return true;
    this.settings.unnamed?.();
    return false;
  }

  /** The name that caches know the answer by; undefined if they may neither give nor keep it. */
  keyOf(context: ExecutionContext, transport: Substitutes): string | undefined {
    try {
      const principal = this.principalOf(context, transport);
      if (principal === NOBODY_KNOWS) return undefined;
      const identity = transport.identityOf(context);
      if (this.settings.place.isOneOfSeveral && identity.place === undefined) return undefined;
      return this.key(identity, principal, (name) => transport.varyingHeaderOf(context, name));
    } catch {
      // An answer that cannot be distinguished from others is not kept.
      return undefined;
    }
  }

  /** The same for a request that no caller has sent. */
  keyFor(question: WarmUpEntry): string {
    const { options, place } = this.settings;
    const { params, query, body, vary, principal, path } = question;
    if (place.isOneOfSeveral !== (path !== undefined)) {
      const what = place.isOneOfSeveral ? 'the one that is meant: the handler has several' : 'none';
      throw new InvalidArgumentError('path', path, what);
    }
    const whose = options.shared === true ? undefined : principal;
    const given = new Map(Object.entries(vary ?? {}).map(([name, is]) => [name.toLowerCase(), is]));
    const identity = { verb: place.verb, place: path, params, query, body };
    return this.key(identity, whose, (name) => given.get(name));
  }

  private key(
    identity: RequestIdentity,
    principal: string | undefined,
    headerOf: (name: string) => string | undefined,
  ): string {
    const { service, place, options } = this.settings;
    const { schemaVersion } = options;
    const { verb, params, query, body } = identity;
    const route = `${verb} ${place.name}${place.isOneOfSeveral ? ` at ${identity.place}` : ''}`;
    const vary = this.varyOf(headerOf);
    return degradeKey({ service, route, params, query, body, schemaVersion, principal, vary });
  }

  private principalOf(
    context: ExecutionContext,
    transport: Substitutes,
  ): string | undefined | typeof NOBODY_KNOWS {
    const name = this.nameOf(context, transport);
    if (name !== undefined || this.settings.options.shared === true) return name;
    try {
      const hasCredentials = transport.hasCredentials(context, this.unknown);
      const whose = cacheability({ hasCredentials, principal: undefined, shared: false });
      return whose === 'none' ? NOBODY_KNOWS : undefined;
    } catch {
      return NOBODY_KNOWS;
    }
  }

  /** By what the application says alone; undefined if it says nothing, or if the answers are everybody's. */
  private nameOf(
    context: ExecutionContext,
    transport: Substitutes,
  ): string | undefined | typeof NOBODY_KNOWS {
    const { options, user } = this.settings;
    if (options.shared === true) return undefined;
    try {
      const who = (options.principal ?? user)?.(context) ?? transport.trustedUserOf(context);
      if ((who ?? undefined) === undefined) return undefined;
      // A promise of the name comes too late for a key.
      return isStrayPromise(who) ? NOBODY_KNOWS : (principalName(who) ?? NOBODY_KNOWS);
    } catch {
      return NOBODY_KNOWS;
    }
  }

  /** Keys may be read by people who must not see a token. */
  private varyOf(headerOf: (name: string) => string | undefined) {
    if (this.vary.length === 0) return undefined;
    const values = this.vary.map((name) => {
      const value = headerOf(name);
      const isSecret = value !== undefined && this.settings.credentials.has(name);
      return [name, isSecret ? digestOf(value) : value] as const;
    });
    return Object.fromEntries(values);
  }
}
