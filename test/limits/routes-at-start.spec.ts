import { Controller, Get, Injectable, Module, SetMetadata, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  InvalidArgumentError,
  RateLimit,
  RateLimitModule,
  SkipRateLimit,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { closeLimiters, handlerOf, namesOf, planOf, POLICIES, tableOf } from './route-tables.js';

const QUOTA = { apps: { app: { guaranteed: 10 } } };

afterAll(closeLimiters);

describe('at start', () => {
  @Controller()
  class Plain {}

  @Controller()
  class Typo {
    @Get()
    @RateLimit('typo')
    list(): void {}
  }

  @Controller()
  class SkippedTypo {
    @Get()
    @RateLimit('a')
    @SkipRateLimit('typo')
    list(): void {}
  }

  @Controller()
  @SkipRateLimit('typo')
  class SkippedClass {
    @Get()
    list(): void {}
  }

  @Injectable()
  class TypoProvider {
    @RateLimit({ rate: -1 })
    work(): void {}
  }

  async function start(type: Type, options: RateLimitModuleInput = {}): Promise<void> {
    class AppModule {}
    Module({
      imports: [
        RateLimitModule.forRoot({ policies: POLICIES, ...options }),
        RateLimitModule.forFeature({ ofFeature: { rate: 1 } }),
      ],
      ...(type === TypoProvider ? { providers: [type] } : { controllers: [type] }),
    })(AppModule);
    const app = await NestFactory.createApplicationContext(AppModule as Type, {
      logger: false,
      abortOnError: false,
    });
    await app.close();
  }

  it.each<[Type, string]>([
    [Typo, '@RateLimit on Typo.list'],
    [SkippedTypo, '@SkipRateLimit on SkippedTypo.list'],
    [SkippedClass, '@SkipRateLimit on SkippedClass.list'],
  ])(
    'names the handler of an unknown policy, and those that there are: %p',
    async (type, where) => {
      const failed = start(type);
      await expect(failed).rejects.toThrow(InvalidArgumentError);
      await expect(failed).rejects.toThrow(
        `${where}: expected one of the policies a, b, c, ofFeature, v1.d, got "typo"`,
      );
    },
  );

  const query = SetMetadata('graphql:resolver_type', 'Query');
  const call = SetMetadata('microservices:pattern', [{ service: 'S', rpc: 'r' }]);
  const socketMessage = SetMetadata('websockets:message_mapping', true);

  it.each<[decorate: MethodDecorator, such: string, fine: string]>([
    [Get(), "such as 'query.id', 'params.id' or 'body.id': requests of HTTP have names", 'body.id'],
    [query, "such as 'args.id': arguments of GraphQL", 'args.id'],
    [call, "such as 'id': messages", 'id'],
  ])('says what to write where a place has no meaning', (decorate, such, fine) => {
    class Named {
      @RateLimit({ rate: 1, key: ['ip', { param: 0 }] })
      inline(): void {}

      @RateLimit('a')
      later(): void {}
    }
    for (const name of ['inline', 'later'] as const) {
      decorate(Named.prototype, name, Object.getOwnPropertyDescriptor(Named.prototype, name)!);
    }
    expect(() => planOf(Named, 'inline')).toThrow(
      `@RateLimit on Named.inline: expected a { param }`,
    );
    expect(() => planOf(Named, 'inline')).toThrow(such);
    // Also if a document brings the key.
    const table = tableOf();
    table.planOf(Named, handlerOf(Named, 'later'));
    table.checkKeys(() => ({ param: fine }));
    expect(() => table.checkKeys((name) => (name === 'a' ? { param: 0 } : 'ip'))).toThrow(
      `policies.a, asked for by Named.later: expected a { param } by name on this route, ${such}`,
    );
  });

  // On Fastify `id` would be the number of the request: a bucket for each, and no limit at all.
  it.each<[decorate: MethodDecorator, such: string]>([
    [Get(), "'query.id', 'params.id' or 'body.id', got 'id'"],
    [query, "'args.id', got 'id'"],
    [socketMessage, "'data.id', 'client.id' or 'handshake.query.id', got 'id'"],
  ])('says what to write for a name alone where values lie deeper', (decorate, such) => {
    class Bare {
      @RateLimit({ rate: 1, key: ['ip', { param: 'id' }] })
      inline(): void {}

      @RateLimit({ rate: 1, key: 'user', anonymous: { param: 'id' } })
      anonymous(): void {}

      @RateLimit('a')
      later(): void {}
    }
    for (const name of ['inline', 'anonymous', 'later'] as const) {
      decorate(Bare.prototype, name, Object.getOwnPropertyDescriptor(Bare.prototype, name)!);
    }
    for (const name of ['inline', 'anonymous'] as const) {
      expect(() => planOf(Bare, name)).toThrow(
        `@RateLimit on Bare.${name}: expected a { param } by its whole path on this route: ${such}`,
      );
    }
    const table = tableOf();
    table.planOf(Bare, handlerOf(Bare, 'later'));
    expect(() => table.checkKeys((name) => (name === 'a' ? { param: 'id' } : 'ip'))).toThrow(
      `policies.a, asked for by Bare.later: expected a { param } by its whole path on this route: ${such}`,
    );
  });

  it.each(['args.sku', 'body.sku', 'params.sku'])('says what to write for %s of gRPC', (param) => {
    class Calls {
      @call
      @RateLimit({ rate: 1, key: { param } })
      get(): void {}
    }
    expect(() => planOf(Calls, 'get')).toThrow(
      "@RateLimit on Calls.get: expected a { param } by the name of a field on this route: 'sku', " +
        `or 'request.${param}' where there is such a field, got '${param}'`,
    );
  });

  it.each([
    [call, 'request.body.sku'],
    [socketMessage, 'data'],
    [socketMessage, 'client.data.tenant'],
    [query, 'variables.id'],
  ])('takes other paths that there are', (decorate, param) => {
    class Calls {
      @decorate
      @RateLimit({ rate: 1, key: { param } })
      get(): void {}
    }
    expect(namesOf(planOf(Calls, 'get'))).toEqual(['Calls.get']);
  });

  it('takes a name alone where messages have fields', () => {
    class Calls {
      @SetMetadata('microservices:pattern', [{ service: 'S', rpc: 'r' }])
      @RateLimit({ rate: 1, key: { param: 'sku' } })
      get(): void {}
    }
    expect(namesOf(planOf(Calls, 'get'))).toEqual(['Calls.get']);
  });

  it('takes a place where messages may be lists', () => {
    class Messages {
      @SetMetadata('microservices:pattern', ['sum'])
      @RateLimit({ rate: 1, key: { param: 0 } })
      sum(): void {}
    }
    expect(namesOf(planOf(Messages, 'sum'))).toEqual(['Messages.sum']);
  });

  it('says so if a policy is to stand in the place of one that would not hold', async () => {
    @Controller()
    class InsteadOfNothing {
      @Get()
      @RateLimit('a', { instead: 'b' })
      list(): void {}
    }
    await expect(start(InsteadOfNothing)).rejects.toThrow(
      '@RateLimit on InsteadOfNothing.list.instead: expected a policy of the class or of',
    );
    await start(InsteadOfNothing, { apply: ['b'] });
  });

  it('says so if there are none', async () => {
    class Nothing {}
    Module({ imports: [RateLimitModule.forRoot()], controllers: [Typo] })(Nothing);
    const failed = NestFactory.createApplicationContext(Nothing as Type, {
      logger: false,
      abortOnError: false,
    });
    await expect(failed).rejects.toThrow('there are none');
  });

  it('names what is wrong with a policy of a handler', async () => {
    await expect(start(TypoProvider)).rejects.toThrow(/TypoProvider\.work/);
  });

  it('knows what is applied to all, even if nothing is limited yet', async () => {
    @Controller()
    class Free {
      @Get()
      list(): void {}
    }
    await expect(start(Free, { apply: ['typo'] })).rejects.toThrow(
      /apply.*one of the policies a, b/,
    );
    await expect(start(Free, { apply: ['ofFeature'] })).resolves.toBeUndefined();
    await expect(start(Free, { apply: 'quota' })).rejects.toThrow(InvalidArgumentError);
    const withQuota = { apply: 'quota', quota: QUOTA, app: 'app' } as const;
    await expect(start(Free, withQuota)).resolves.toBeUndefined();
  });

  it.each([31, 129, 64.5, NaN, '64'])('refuses networks of %p bits', async (ipv6Prefix) => {
    const failed = start(Plain, { ipv6Prefix: ipv6Prefix as number });
    await expect(failed).rejects.toThrow(/ipv6Prefix/);
  });
});
