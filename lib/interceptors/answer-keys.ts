import { type ExecutionContext } from '@nestjs/common';
import { cacheability, degradeKey } from '../degradation/index.js';
import { principalName } from '../guards/index.js';
import { type DegradeOptions } from './degrade-options.js';
import { type DegradeTransport } from './degrade-transport.js';

export interface AnswerKeySettings {
  /** The route, as all processes of the fleet call it. */
  readonly route: string;
  readonly options: DegradeOptions;
  /** The module's word on who a caller is. */
  readonly user: ((context: ExecutionContext) => unknown) | undefined;
}

/** What an answer depends on, in the words of an application. */
export interface AnsweredQuestion {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  /** Of messages, and of routes that are `idempotent`. */
  readonly body?: unknown;
  /** The headers that the route varies by. */
  readonly vary?: Readonly<Record<string, string>>;
  /** Whose answer it is; left out for callers without a name. */
  readonly principal?: string;
}

/** A caller that has shown credentials, but nobody knows whose. */
const NOBODY_KNOWS = Symbol('nobody knows');

/** Says for whom an answer is, and under what name it is kept. */
export class AnswerKeys {
  private readonly vary: readonly string[];

  constructor(private readonly settings: AnswerKeySettings) {
    this.vary = (settings.options.vary ?? []).map((name) => name.toLowerCase());
  }

  /** Cheap, and the same for the same question of the same caller; undefined if it is not to be kept. */
  questionOf(context: ExecutionContext, transport: DegradeTransport): string | undefined {
    try {
      const principal = this.principalOf(context, transport);
      if (principal === NOBODY_KNOWS) return undefined;
      let question = transport.questionOf(context);
      for (const name of this.vary) question += `\n${transport.headerOf(context, name)}`;
      // No question begins with a number and a colon.
      return principal === undefined ? question : `${principal.length}:${principal}${question}`;
    } catch {
      // A body that is no JSON, or a function of the application that fails.
      return undefined;
    }
  }

  /** The name that caches know the answer by; undefined if they may neither give nor keep it. */
  keyOf(context: ExecutionContext, transport: DegradeTransport): string | undefined {
    try {
      const principal = this.principalOf(context, transport);
      if (principal === NOBODY_KNOWS) return undefined;
      const { params, query } = transport.partsOf(context) as { params: Values; query: Values };
      const body = this.hasBody ? transport.bodyOf(context) : undefined;
      return this.key(params, query, principal, body, (name) => transport.headerOf(context, name));
    } catch {
      return undefined;
    }
  }

  /** The same for a question that nobody has sent. */
  keyFor({ params, query, body, vary, principal }: AnsweredQuestion): string {
    const whose = this.settings.options.shared === true ? undefined : principal;
    const given = new Map(Object.entries(vary ?? {}).map(([name, is]) => [name.toLowerCase(), is]));
    const text = this.hasBody ? JSON.stringify(body) : undefined;
    return this.key(params, query, whose, text, (name) => given.get(name));
  }

  private get hasBody(): boolean {
    return this.settings.options.idempotent === true;
  }

  private key(
    params: Values,
    query: Values,
    principal: string | undefined,
    body: string | undefined,
    headerOf: (name: string) => string | undefined,
  ): string {
    const { route, options } = this.settings;
    const { schemaVersion } = options;
    const vary = this.varyOf(headerOf, body);
    // A request that has none of them is like one with an empty list.
    return degradeKey({
      ...{ route, params: params ?? {}, query: query ?? {} },
      ...{ schemaVersion, principal, vary },
    });
  }

  private principalOf(
    context: ExecutionContext,
    transport: DegradeTransport,
  ): string | undefined | typeof NOBODY_KNOWS {
    const { options, user } = this.settings;
    if (options.shared === true) return undefined;
    try {
      const who = (options.principal ?? user)?.(context) ?? transport.userOf(context);
      const isSomebody = (who ?? undefined) !== undefined;
      const principal = isSomebody ? principalName(who) : undefined;
      if (principal !== undefined) return principal;
      const hasCredentials = isSomebody || transport.hasCredentials(context);
      const whose = cacheability({ hasCredentials, principal, shared: false });
      return whose === 'none' ? NOBODY_KNOWS : undefined;
    } catch {
      return NOBODY_KNOWS;
    }
  }

  /** A message, or a body that only asks, is as much of the question as its address. */
  private varyOf(headerOf: (name: string) => string | undefined, body: string | undefined): Values {
    if (this.vary.length === 0 && body === undefined) return undefined;
    const headers = this.vary.map((name) => [name, headerOf(name)] as const);
    return Object.fromEntries(body === undefined ? headers : [...headers, ['', body]]);
  }
}

type Values = Record<string, unknown> | undefined;
