import {
  Controller,
  Get,
  Injectable,
  Module,
  SetMetadata,
  UseGuards,
  type Type,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ResolveField, Resolver } from '@nestjs/graphql';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { RateLimit, RateLimitGuard } from 'nestjs-weir';
import { Warnings } from '../support/nest/warnings.js';
import { failure, HELLO, HelloController, root } from './started-app.js';

describe('@RateLimit where no guard runs', () => {
  const nothing = (where: string): string =>
    `@RateLimit on ${where} limits nothing, as no guard runs there: it is for handlers of controllers, ` +
    'gateways and resolvers. In a service inject RateLimiter and call tryAcquire, or put @Protect on the method';

  @Injectable()
  class Service {
    @RateLimit('hello')
    work(): void {}
  }

  it('on a method of a service', async () => {
    expect(await failure(root(), Service)).toBe(nothing('Service.work'));
  });

  it('on a method of what a factory has made', async () => {
    @Module({ providers: [{ provide: 'made', useFactory: () => new Service() }] })
    class Made {}
    Reflect.defineMetadata('imports', [], Made);
    expect(await failure(root(), Made)).toBe(nothing('Service.work'));
  });

  it('on a service as a whole', async () => {
    @Injectable()
    @RateLimit('hello')
    class Whole {
      work(): void {}
    }
    expect(await failure(root(), Whole)).toBe(nothing('Whole'));
  });

  it('on a helper of a controller', async () => {
    @Controller()
    class Helped {
      @RateLimit('hello')
      help(): void {}
    }
    expect(await failure(root(), Helped)).toBe(nothing('Helped.help'));
  });

  it('on what a gateway does when somebody connects', async () => {
    @WebSocketGateway()
    @RateLimit('hello')
    class Gateway {
      @SubscribeMessage('say')
      say(): void {}

      @RateLimit('hello')
      handleConnection(): void {}
    }
    expect(await failure(root(), Gateway)).toBe(nothing('Gateway.handleConnection'));
  });

  it.each([
    [undefined, false],
    [['filters'], false],
    [['guards'], true],
  ])('on a field of an object, with enhancers %j', async (fieldResolverEnhancers, isMet) => {
    @Resolver('Book')
    class Books {
      @ResolveField('blurb')
      @RateLimit('hello')
      blurb(): string {
        return '';
      }
    }
    const options = { provide: 'GqlModuleOptions', useValue: { fieldResolverEnhancers } };
    @Module({ imports: [], providers: [options] })
    class Graphql {}
    expect(await failure(root(), Graphql, Books)).toBe(
      isMet
        ? undefined
        : "@RateLimit on Books.blurb limits nothing: Nest guards fields of objects only with fieldResolverEnhancers: ['guards'] " +
            'in the options of GraphQLModule. Or put it on the query that gives the object',
    );
  });

  it('is only warned of on a method that another framework calls', async () => {
    @Injectable()
    class Jobs {
      @SetMetadata('SCHEDULER_TYPE', 1)
      @RateLimit('hello')
      tick(): void {}
    }
    const warnings = new Warnings();
    const builder = Test.createTestingModule({ imports: [root() as never], providers: [Jobs] });
    const app = (await builder.compile()).createNestApplication();
    warnings.listen(app);
    await app.init();
    await app.close();
    expect(warnings.texts).toEqual([
      "@RateLimit on Jobs.tick holds only if what calls it (SCHEDULER_TYPE) runs Nest's guards, which most do not: " +
        'to be sure, ask the RateLimiter there.',
    ]);
  });
});

describe('RateLimitGuard where nothing is limited', () => {
  async function warningsOf(controller: Type, options: object, providers: object[] = []) {
    const warnings = new Warnings();
    const imports = [root(options) as never];
    const builder = Test.createTestingModule({
      imports,
      controllers: [controller],
      providers: providers as never,
    });
    const app = (await builder.compile()).createNestApplication();
    warnings.listen(app);
    await app.init();
    await app.close();
    return warnings.texts;
  }
  const idle = (where: string): string =>
    `RateLimitGuard ${where} limits nothing, as nothing says what to limit: write @RateLimit('name'), which ` +
    "brings its guard along, or apply: ['name'] in forRoot for all routes.";
  const GLOBAL = [{ provide: APP_GUARD, useClass: RateLimitGuard }];

  @Controller()
  class Plain {
    @Get()
    get(): string {
      return '';
    }
  }

  it('for all routes, as @nestjs/throttler wants it', async () => {
    expect(await warningsOf(Plain, { policies: HELLO }, GLOBAL)).toEqual([idle('as APP_GUARD')]);
    expect(await warningsOf(Plain, { policies: HELLO, apply: ['hello'] }, GLOBAL)).toEqual([]);
    expect(await warningsOf(HelloController, { policies: HELLO })).toEqual([]);
  });

  it('on a method or a class', async () => {
    @Controller()
    @UseGuards(RateLimitGuard)
    class Guarded {
      @Get()
      get(): string {
        return '';
      }

      @Get('other')
      @UseGuards(RateLimitGuard)
      other(): string {
        return '';
      }

      @Get('limited')
      @RateLimit('hello')
      limited(): string {
        return '';
      }
    }
    expect(await warningsOf(Guarded, { policies: HELLO })).toEqual([
      idle('on Guarded.get'),
      idle('on Guarded.other'),
    ]);
  });
});
