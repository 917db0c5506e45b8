import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Args, type CustomScalar, GraphQLModule, Query, Resolver, Scalar } from '@nestjs/graphql';
import { RateLimit, RateLimitModule } from 'nestjs-weir';

import { startHttp, type HttpApp } from '../support/nest/http-apps.js';
import { expectNoFaults, limits, ONLY, NAMES, PAYLOADS, REFUSED } from './careless-app.js';

expectNoFaults();

describe('on GraphQL', () => {
  /** Any JSON, as applications with a scalar of that name take it. */
  @Scalar('Anything')
  class Anything implements CustomScalar<unknown, unknown> {
    parseValue = (value: unknown): unknown => value;
    serialize = (value: unknown): unknown => value;
    parseLiteral = (): unknown => 'literal';
  }

  @Resolver()
  class Orders {
    @Query(() => String, { nullable: true })
    @RateLimit('keyed', ONLY)
    keyed(@Args('any', { type: () => Anything, nullable: true }) _any?: unknown): string {
      return 'ok';
    }

    @Query(() => String, { nullable: true })
    @RateLimit({ rate: 1e6, key: { param: 'variables.any' } }, ONLY)
    variable(@Args('any', { type: () => Anything, nullable: true }) _any?: unknown): string {
      return 'ok';
    }

    @Query(() => String, { nullable: true })
    @RateLimit('priced', ONLY)
    priced(@Args('any', { type: () => Anything, nullable: true }) _any?: unknown): string {
      return 'ok';
    }

    @Query(() => String, { nullable: true })
    @RateLimit()
    charged(@Args('any', { type: () => Anything, nullable: true }) _any?: unknown): string {
      return 'ok';
    }
  }

  let http: HttpApp;
  beforeAll(async () => {
    http = await startHttp('express', {
      imports: [
        RateLimitModule.forRoot(limits('args.any')),
        GraphQLModule.forRoot<ApolloDriverConfig>({
          driver: ApolloDriver,
          autoSchemaFile: true,
          allowBatchedHttpRequests: true,
          includeStacktraceInErrorResponses: false,
        }),
      ],
      providers: [Orders, Anything],
    });
  });
  afterAll(() => http.close());

  interface Result {
    readonly data?: unknown;
    readonly errors?: readonly { readonly extensions: { readonly code: string } }[];
  }

  const ask = async (body: string): Promise<Result> => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${http.url}/graphql`, { method: 'POST', headers, body });
    expect(response.status).toBeLessThan(500);
    return (await response.json()) as Result;
  };
  const codesOf = ({ errors = [] }: Result): string[] =>
    errors.map(({ extensions }) => extensions.code);

  const FIELDS = ['keyed', 'variable', 'priced', 'charged'];
  const queryOf = (name: string): string =>
    `"query":"query($any: Anything) { ${name}(any: $any) }"`;

  it.each(Object.keys(PAYLOADS))('%s as a variable is answered', async (what) => {
    for (const name of FIELDS) {
      const result = await ask(`{${queryOf(name)},"variables":{"any":${PAYLOADS[what]}}}`);
      for (const code of codesOf(result)) expect(REFUSED).toContain(code);
    }
  });

  it.each([
    ['a list', '[]'],
    ['a text', '"any"'],
    ['a number', '7'],
    ['names of prototypes', NAMES],
    ['missing', 'null'],
  ])('variables that are %s are answered', async (_, variables) => {
    for (const name of FIELDS) {
      const result = await ask(`{${queryOf(name)},"variables":${variables}}`);
      for (const code of codesOf(result)) expect([...REFUSED, 'BAD_REQUEST']).toContain(code);
    }
  });

  it.each([
    ['a literal', '{"query":"{ keyed(any: {a: [1]}) priced(any: 7) charged(any: null) }"}'],
    [
      'a batch',
      `[${Array.from({ length: 20 }, () => '{"query":"{ keyed charged priced }"}').join()}]`,
    ],
    [
      'an alias of a prototype',
      '{"query":"{ __proto: keyed constructor: priced toString: charged }"}',
    ],
    ['no argument', '{"query":"{ keyed variable priced charged }"}'],
  ])('%s is answered', async (_, body) => {
    const answers: readonly Result[] = [await ask(body)].flat();
    for (const code of answers.flatMap(codesOf)) expect(REFUSED).toContain(code);
  });
});
