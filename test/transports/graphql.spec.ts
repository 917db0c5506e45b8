import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { type ExecutionContext } from '@nestjs/common';
import {
  Args,
  Field,
  GqlExecutionContext,
  GraphQLModule,
  GraphQLSchemaHost,
  Int,
  Mutation,
  ObjectType,
  Parent,
  Query,
  ResolveField,
  Resolver,
  Subscription,
} from '@nestjs/graphql';
import { parse, subscribe, type ExecutionResult } from 'graphql';
import {
  RateLimit,
  RateLimitDecision,
  RateLimitedException,
  RateLimiter,
  RateLimitModule,
  rateLimitOf,
  type Decision,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { callsOfField } from '../recipes/graphql-aliases.js';
import { startRedis, stopAll, until } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';
import { startHttp, type HttpApp } from '../support/nest/http-apps.js';

@ObjectType()
class Author {
  @Field(() => String)
  name!: string;
}

@ObjectType()
class Book {
  @Field(() => Int)
  id!: number;

  @Field(() => Author, { nullable: true })
  author?: Author;
}

/** The contexts of operations, as the last field of each has seen them. */
const contexts: object[] = [];

/** For whom the handler of that name has run. */
const logins: string[] = [];

/** The number of runs of the handler of that name. */
const shaped = { calls: 0 };

@Resolver(() => Book)
class BooksResolver {
  @Query(() => Int, { nullable: true })
  @RateLimit('two')
  left(@RateLimitDecision() { remaining }: Decision): number {
    return remaining;
  }

  @Query(() => String, { nullable: true })
  @RateLimit('five')
  policies(@RateLimitDecision() decision: Decision): string {
    const all = decision.decisions ?? [decision];
    return all.map(({ policy, remaining }) => `${policy} ${remaining}`).join(', ');
  }

  @Query(() => String, { nullable: true })
  @RateLimit('two')
  @RateLimit('five')
  both(): string {
    return 'ok';
  }

  @Query(() => String, { nullable: true })
  @RateLimit({ rate: 1, period: '1h', key: { param: 'args.id' } })
  byId(@Args('id', { type: () => Int }) id: number): string {
    return `book ${id}`;
  }

  @Mutation(() => String, { nullable: true })
  @RateLimit({ rate: 3, period: '1h', key: { param: 'args.email' }, cost: costOfField })
  login(
    @Args('email') email: string,
    @Args('cost', { type: () => Int, nullable: true }) _cost?: number,
  ): string {
    logins.push(email);
    return 'ok';
  }

  @Query(() => String, { nullable: true })
  @RateLimit({ rate: 1, period: '1h', key: { header: 'x-tenant' } })
  byHeader(): string {
    return 'ok';
  }

  @Query(() => String, { nullable: true })
  @RateLimit({ rate: 1, period: '1h', key: 'user' })
  byUser(): string {
    return 'ok';
  }

  @Query(() => String, { nullable: true })
  @RateLimit({
    rate: 1,
    period: '1h',
    rejection: (decision: Decision, context: ExecutionContext) => {
      contexts.push(context.getArgByIndex<object>(2));
      return new RateLimitedException(decision);
    },
  })
  ownRejection(): string {
    return 'ok';
  }

  @Query(() => String, { nullable: true })
  @RateLimit({ algorithm: 'leaky-bucket', mode: 'shaper', rate: 1, period: '1h', burst: 3 })
  shaped(): string {
    shaped.calls++;
    return 'ok';
  }

  @Query(() => String, { nullable: true })
  @RateLimit({ rate: 5, period: '1h', cost: callsOfField })
  paid(): string {
    return 'ok';
  }

  @Query(() => [Book])
  books(): Book[] {
    return [{ id: 1 }, { id: 2 }, { id: 3 }];
  }

  @ResolveField(() => Author, { nullable: true })
  @RateLimit('two')
  author(@Parent() { id }: Book): Author {
    return { name: `author ${id}` };
  }

  @Mutation(() => String, { nullable: true })
  @RateLimit('two')
  addBook(): string {
    return 'added';
  }

  @Subscription(() => Book)
  @RateLimit('two')
  bookAdded(): AsyncIterator<unknown> {
    return events();
  }
}

function costOfField(context: ExecutionContext): number {
  return GqlExecutionContext.create(context).getArgs<{ cost?: number }>().cost ?? 1;
}

async function* events(): AsyncGenerator<{ bookAdded: Book }> {
  for (const id of [1, 2, 3]) yield await Promise.resolve({ bookAdded: { id } });
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly data: Record<string, unknown> | null | undefined;
  readonly errors: { message: string; path: unknown[]; extensions: Record<string, unknown> }[];
}

/** Nest's driver makes every status 200 as soon as there is any data, even if all of it is null. */
const OWN_STATUS = { preserveHttpStatusForExecutionErrors: false };

const toClose: (() => unknown)[] = [];

async function start(
  options: RateLimitModuleInput = {},
  graphql: Partial<ApolloDriverConfig> = {},
): Promise<HttpApp & { query(text: string, headers?: object): Promise<Answer> }> {
  const http = await startHttp('express', {
    imports: [
      RateLimitModule.forRoot({
        policies: { two: { rate: 2, period: '1h' }, five: { rate: 5, period: '1h' } },
        ...options,
      }),
      GraphQLModule.forRoot<ApolloDriverConfig>({
        driver: ApolloDriver,
        autoSchemaFile: true,
        fieldResolverEnhancers: ['guards'],
        includeStacktraceInErrorResponses: false,
        ...graphql,
      }),
    ],
    providers: [BooksResolver],
  });
  toClose.push(() => http.close());
  const query = async (text: string, headers: object = {}): Promise<Answer> => {
    const response = await fetch(`${http.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query: text }),
    });
    const { data, errors = [] } = (await response.json()) as Answer;
    return { status: response.status, headers: response.headers, data, errors };
  };
  return { ...http, query };
}

afterEach(async () => {
  contexts.length = 0;
  for (const close of toClose.splice(0)) await close();
});
afterAll(() => stopAll());

describe('GraphQL operations', () => {
  it('get headers, and if denied an error with its code and the status of too many', async () => {
    const app = await start({ clock: new ManualClock() }, OWN_STATUS);
    const first = await app.query('{ left }');
    expect([first.status, first.data, first.errors]).toEqual([200, { left: 1 }, []]);
    expect(first.headers.get('ratelimit')).toBe('"two";r=1;t=1800');
    await app.query('{ left }');
    const denied = await app.query('{ left }');
    expect(denied.status).toBe(429);
    expect(denied.headers.get('retry-after')).toBe('1800');
    expect(denied.headers.get('ratelimit')).toBe('"two";r=0;t=1800');
    expect(denied.data).toEqual({ left: null });
    expect(denied.errors).toEqual([
      {
        message: 'Too many requests',
        locations: expect.any(Array) as unknown,
        path: ['left'],
        extensions: { code: 'RATE_LIMITED', retryAfterMs: 1_800_000, policy: 'two' },
      },
    ]);
  });

  it('keep the status that Nest has for answers with data, unless told otherwise', async () => {
    const app = await start({ clock: new ManualClock() });
    for (let i = 0; i < 2; i++) await app.query('{ left }');
    const { status, headers, errors } = await app.query('{ left }');
    expect([status, headers.get('retry-after'), errors.length]).toEqual([200, '1800', 1]);
  });

  it('are charged once for a policy, and once for each', async () => {
    const app = await start({ clock: new ManualClock() });
    const { data, headers } = await app.query('{ a: left b: left c: left policies }');
    expect(data).toEqual({ a: 1, b: 1, c: 1, policies: 'two 1, five 4' });
    expect(headers.get('ratelimit')).toBe('"two";r=1;t=1800, "five";r=4;t=720');
    expect((await app.query('{ left }')).data).toEqual({ left: 0 });
  });

  it.each(['memory', 'redis'] as const)(
    'are charged for each key that their fields have, on %s',
    async (type) => {
      const store =
        type === 'memory'
          ? type
          : { type, url: (await startRedis()).url, decisionTimeout: '10s' as const };
      const app = await start({ store });
      logins.length = 0;
      const text = (from: number): string => {
        const aliases = Array.from({ length: 50 }, (_, i) => `a${i}: login(email: "victim")`);
        return `mutation { d: login(email: "decoy${from}") ${aliases.join(' ')} }`;
      };
      for (let i = 0; i < 20; i++) await app.query(text(i));
      // One operation is one token for each key, however often it names it.
      expect(logins.filter((email) => email === 'victim')).toHaveLength(3 * 50);
      expect(logins.filter((email) => email.startsWith('decoy'))).toHaveLength(20);
      const { errors } = await app.query('mutation { login(email: "victim") }');
      expect(errors[0]?.extensions['code']).toBe('RATE_LIMITED');
    },
  );

  it('whose fields all ask at once pay once for each key', async () => {
    const { url } = await startRedis();
    const app = await start({ store: { type: 'redis', url, decisionTimeout: '10s' } });
    const fields = Array.from({ length: 40 }, (_, i) => `a${i}: byId(id: ${i % 20})`);
    const first = await app.query(`{ ${fields.join(' ')} }`);
    expect([first.errors, Object.keys(first.data!).length]).toEqual([[], 40]);
    const { errors } = await app.query(`{ ${fields.join(' ')} }`);
    expect(errors).toHaveLength(40);
  });

  it('pay the difference for a field that costs more, and nothing for one that costs less', async () => {
    const app = await start({ clock: new ManualClock() });
    const all =
      '{ a: login(email: "x") b: login(email: "x", cost: 3) c: login(email: "x", cost: 2) }';
    const { data, headers } = await app.query(`mutation ${all}`);
    expect(data).toEqual({ a: 'ok', b: 'ok', c: 'ok' });
    expect(headers.get('ratelimit')).toMatch(/r=0;/);
    const more = await app.query('mutation { a: login(email: "y", cost: 2) b: login(email: "z") }');
    expect(more.errors).toEqual([]);
  });

  it('tell of one bucket for each policy, however many keys they have', async () => {
    const app = await start({ clock: new ManualClock() });
    const aliases = Array.from({ length: 500 }, (_, i) => `a${i}: login(email: "e${i}")`);
    const { headers, errors } = await app.query(`mutation { ${aliases.join(' ')} }`);
    expect(errors).toEqual([]);
    expect(headers.get('ratelimit')!.length).toBeLessThan(100);
  });

  it('are refused where a field asks for what cannot be', async () => {
    const app = await start({ clock: new ManualClock() });
    const { data, errors } = await app.query(
      'mutation { a: login(email: "x", cost: -1) b: login(email: "x", cost: 9) c: login(email: "x") }',
    );
    expect(data).toEqual({ a: null, b: null, c: 'ok' });
    const codes = errors.map(({ extensions }) => extensions['code']);
    expect(codes).toEqual(['COST_OUT_OF_RANGE', 'COST_OUT_OF_RANGE']);
  });

  it('are denied field by field: what a policy denies says nothing of the others', async () => {
    const app = await start({ clock: new ManualClock() });
    for (let i = 0; i < 2; i++) await app.query('{ left }');
    const { data, errors } = await app.query('{ a: left both policies b: left }');
    expect(data).toEqual({ a: null, both: null, policies: 'two 0, five 4', b: null });
    expect(errors.map(({ path }) => path)).toEqual([['a'], ['both'], ['b']]);
  });

  it('are denied whole, and then have taken nothing of what would have passed', async () => {
    const app = await start({ clock: new ManualClock() });
    for (let i = 0; i < 2; i++) await app.query('{ left }');
    const { data } = await app.query('{ both policies }');
    // Five tokens, less the one of this operation.
    expect(data).toEqual({ both: null, policies: 'two 0, five 4' });
  });

  it('also where fields have guards but no filters', async () => {
    const app = await start({ clock: new ManualClock() }, OWN_STATUS);
    const text = '{ books { id author { name } } }';
    expect((await app.query(text)).data).toMatchObject({
      books: [1, 2, 3].map((id) => ({ author: { name: `author ${id}` } })),
    });
    expect((await app.query('{ left }')).data).toEqual({ left: 0 });
    const { status, errors } = await app.query(text);
    expect([status, errors.map(({ path }) => path[1])]).toEqual([429, [0, 1, 2]]);
    expect(errors[0]!.extensions).toMatchObject({ code: 'RATE_LIMITED', policy: 'two' });
  });

  it('know the arguments of a field, the headers of its request, and users', async () => {
    const app = await start({ clock: new ManualClock() }, { context: contextWithUser });
    expect((await app.query('{ byId(id: 1) }')).data).toEqual({ byId: 'book 1' });
    expect((await app.query('{ byId(id: 2) }')).data).toEqual({ byId: 'book 2' });
    expect((await app.query('{ byId(id: 1) }')).data).toEqual({ byId: null });
    for (const [field, header] of [
      ['byHeader', 'x-tenant'],
      ['byUser', 'x-user'],
    ] as const) {
      const seen = [];
      for (const value of ['a', 'b', 'a']) {
        seen.push((await app.query(`{ ${field} }`, { [header]: value })).data![field]);
      }
      expect(seen).toEqual(['ok', 'ok', null]);
    }
  });

  it.each([
    ['by aliases', '{ a: paid b: paid c: paid }', 3],
    [
      'in fragments',
      '{ a: paid ...F } fragment F on Query { b: paid ...G ...G } fragment G on Query { c: paid }',
      3,
    ],
    ['in inline fragments', '{ ... on Query { a: paid b: paid } c: paid left }', 3],
    ['named twice', '{ paid ...F } fragment F on Query { paid }', 1],
  ])('may pay for each call of a field, %s', async (_, text, calls) => {
    const app = await start({ clock: new ManualClock() });
    expect((await app.query(text)).errors).toEqual([]);
    const left = 5 - calls;
    const fields = (count: number): string =>
      `{ ${Array.from({ length: count }, (_, i) => `f${i}: paid`).join(' ')} }`;
    expect((await app.query(fields(left + 1))).errors).toHaveLength(left + 1);
    expect((await app.query(fields(left))).errors).toEqual([]);
  });

  it('are charged one by one if they come in one request', async () => {
    const app = await start({ clock: new ManualClock() }, { allowBatchedHttpRequests: true });
    const response = await fetch(`${app.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(Array.from({ length: 3 }, () => ({ query: '{ left }' }))),
    });
    const answers = (await response.json()) as Answer[];
    expect(answers.map(({ data }) => data?.left)).toEqual([1, 0, null]);
  });

  it('are charged once by what applies to all, also where that is early for routes', async () => {
    const early = { rate: 5, period: '1h', early: true } as const;
    const two = { rate: 2, period: '1h' } as const;
    const policies = { two, five: two, early };
    const app = await start({ clock: new ManualClock(), policies, apply: ['early'] });
    const { headers } = await app.query('{ a: left b: left books { id } }');
    expect(headers.get('ratelimit')).toBe('"early";r=4;t=720, "two";r=1;t=1800');
    const left = app.app.get(RateLimiter).peek({ policy: 'early', key: '127.0.0.1' });
    expect(left).toMatchObject({ remaining: 4 });
  });

  it('may be denied in other words, and tell loggers what was decided by their context', async () => {
    const app = await start({ clock: new ManualClock() });
    await app.query('{ ownRejection }');
    const { errors } = await app.query('{ ownRejection }');
    expect(errors[0]!.extensions).toMatchObject({ code: 'RATE_LIMITED' });
    expect(rateLimitOf(contexts[0]!)).toMatchObject({ allowed: false, retryAfterMs: 3_600_000 });
  });

  it('hold all their fields back together', async () => {
    const clock = new ManualClock();
    const app = await start({ clock });
    await app.query('{ shaped }');
    const [timers, { calls }] = [clock.pending, { ...shaped }];
    const answer = app.query('{ a: shaped b: shaped }');
    await until(() => clock.pending > timers, { what: 'an operation that is held back' });
    await clock.advanceAsync(3_599_000);
    expect(shaped.calls).toBe(calls);
    await clock.advanceAsync(1_000);
    expect((await answer).data).toEqual({ a: 'ok', b: 'ok' });
    expect(shaped.calls).toBe(calls + 2);
  });

  it('are limited if they change something, too', async () => {
    const app = await start({ clock: new ManualClock() });
    const text = 'mutation { a: addBook b: addBook }';
    for (let i = 0; i < 2; i++) {
      expect((await app.query(text)).data).toEqual({ a: 'added', b: 'added' });
    }
    expect((await app.query(text)).errors).toHaveLength(2);
  });

  it('count for a quota by their fields, and are overload where capacity lacks', async () => {
    const clock = new ManualClock();
    const quota = { cluster: { capacity: 10 }, apps: { shop: { guaranteed: 5, burst: 100 } } };
    const policies = { two: { rate: 1000 }, five: { rate: 1000 } };
    const app = await start({ clock, policies, quota, app: 'shop' }, OWN_STATUS);
    const spentOn: string[] = [];
    app.app.get(RateLimiter).on('consumption', ({ byMethod }) => {
      spentOn.push(...Object.entries(byMethod).map(([name, { count }]) => `${name} ${count}`));
    });
    expect((await app.query('{ left policies a: left }')).status).toBe(200);
    clock.advance(2_000);
    expect(spentOn).toEqual(['Query.left 1']);
    const answers = [];
    for (let i = 0; i < 20; i++) answers.push(await app.query('{ left }'));
    expect(answers[19]!.status).toBe(503);
    const { extensions } = answers[19]!.errors[0]!;
    expect(extensions).toEqual({
      code: 'OVERLOADED',
      retryAfterMs: expect.any(Number) as number,
    });
  });
});

describe('subscriptions', () => {
  it('are checked when they begin, and the fields of each event by themselves', async () => {
    const app = await start({ clock: new ManualClock() });
    const { schema } = app.app.get(GraphQLSchemaHost);
    const request = { headers: {}, socket: { remoteAddress: '192.0.2.1' } };
    const begin = async (text: string) =>
      subscribe({
        schema,
        document: parse(text),
        // As graphql-ws and Nest have it: what is known of the connection is the request.
        contextValue: { req: { extra: { request } } },
      });
    const answers: unknown[] = [];
    const first = await begin('subscription { bookAdded { id author { name } } }');
    for await (const { data } of first as AsyncIterable<ExecutionResult>) answers.push(data);
    // One token was for the subscription, and one for the authors of the first event.
    expect(answers).toEqual([
      { bookAdded: { id: 1, author: { name: 'author 1' } } },
      { bookAdded: { id: 2, author: null } },
      { bookAdded: { id: 3, author: null } },
    ]);
    const denied = (await begin('subscription { bookAdded { id } }')) as ExecutionResult;
    expect(denied.errors?.[0]?.extensions).toMatchObject({ code: 'RATE_LIMITED', policy: 'two' });
  });
});

describe('operations that Redis decides', () => {
  it('are charged once for fields that ask at the same time', async () => {
    const redis = await startRedis();
    const app = await start({
      policies: {
        two: { rate: 2, period: '1h', sync: 'exact' },
        five: { rate: 5, period: '1h', sync: 'exact' },
      },
      store: { type: 'redis', url: redis.url, decisionTimeout: '5s' },
    });
    await app.app.get(RateLimiter).ready();
    const text = '{ a: left policies b: left both }';
    const first = await app.query(text);
    expect(first.data).toEqual({ a: 1, policies: 'two 1, five 4', b: 1, both: 'ok' });
    expect((await app.query(text)).data).toMatchObject({ a: 0, policies: 'two 0, five 3' });
    const { data, errors } = await app.query(text);
    expect(data).toEqual({ a: null, policies: 'two 0, five 2', b: null, both: null });
    expect(errors.map(({ path }) => path[0]).sort()).toEqual(['a', 'b', 'both']);
  });
});

function contextWithUser({ req }: { req: { headers: Record<string, string> } }): object {
  const { 'x-user': id } = req.headers;
  return id === undefined ? {} : { user: { id } };
}
