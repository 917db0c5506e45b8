import {
  Controller,
  Get,
  Injectable,
  Module,
  type INestApplication,
  type Type,
} from '@nestjs/common';
import { Query, Resolver } from '@nestjs/graphql';
import { GrpcMethod, MessagePattern } from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  Degradation,
  Degrade,
  Protect,
  Protection,
  RateLimit,
  RateLimitConfig,
  RateLimiter,
  RateLimitGuard,
  RateLimitModule,
} from 'nestjs-weir';
import { NoopRateLimiter, RateLimitTestingModule } from 'nestjs-weir/testing';

// Unit tests put one class together, and import nothing.

@Injectable()
class CatsService {
  @Protect('db', { deadline: 50, bulkhead: { maxInFlight: 1 } })
  find(): Promise<string> {
    return Promise.resolve('a cat');
  }
}

@Controller()
@RateLimit('class')
class CatsController {
  constructor(private readonly cats: CatsService) {}

  @Get()
  @RateLimit('method')
  @Degrade({ shared: true, level3: 'roughly' })
  get(): Promise<string> {
    return this.cats.find();
  }

  @Get('plain')
  plain(): string {
    return 'plain';
  }

  roughly(): string {
    return 'some cat';
  }
}

@Controller()
class MessageController {
  @MessagePattern('sum')
  @RateLimit('sum')
  sum(): number {
    return 1;
  }

  @GrpcMethod('Cats', 'Find')
  @RateLimit('find')
  find(): object {
    return {};
  }
}

@WebSocketGateway()
class CatsGateway {
  @SubscribeMessage('say')
  @RateLimit('say')
  say(): string {
    return 'said';
  }
}

@Resolver()
class CatsResolver {
  @Query(() => String)
  @RateLimit('cats')
  cats(): string {
    return 'cats';
  }
}

const apps: INestApplication[] = [];
afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

describe('without the module', () => {
  it.each<[string, Type, Type[]]>([
    ['a controller', CatsController, [CatsService]],
    ['a controller of messages and gRPC', MessageController, []],
  ])('%s is put together as any other', async (_, type, providers) => {
    const module = await Test.createTestingModule({ controllers: [type], providers }).compile();
    expect(module.get(type)).toBeInstanceOf(type);
    await module.close();
  });

  it.each<[string, Type]>([
    ['a gateway', CatsGateway],
    ['a resolver', CatsResolver],
    ['a service with @Protect', CatsService],
  ])('%s is put together as any other', async (_, type) => {
    const module = await Test.createTestingModule({ providers: [type] }).compile();
    expect(module.get(type)).toBeInstanceOf(type);
    await module.close();
  });

  it.each<[string, Type, boolean]>([
    ['a controller', CatsController, true],
    ['a controller of messages', MessageController, true],
    ['a gateway', CatsGateway, false],
    ['a resolver', CatsResolver, false],
    ['a service with @Protect', CatsService, false],
  ])('no application starts that has %s', async (_, type, isController) => {
    const module = await Test.createTestingModule({
      controllers: isController ? [type] : [],
      providers: isController ? [CatsService] : [type],
    }).compile();
    const app = module.createNestApplication({ logger: false });
    await expect(app.init()).rejects.toMatchObject({
      code: 'MODULE_MISSING',
      message: expect.stringContaining('add RateLimitModule.forRoot({ … })') as string,
    });
  });

  it('no call passes where no hook has run', async () => {
    const module = await Test.createTestingModule({
      controllers: [CatsController],
      providers: [CatsService, RateLimitGuard],
    }).compile();
    const context = {
      getClass: () => CatsController,
      getHandler: () => CatsController.prototype.get,
    };
    expect(() => module.get(RateLimitGuard).canActivate(context as never)).toThrow(
      '@RateLimit on CatsController.get needs RateLimitModule',
    );
    await expect(module.get(CatsService).find()).rejects.toMatchObject({
      code: 'PROTECTION_MISSING',
    });
  });

  it('what is wrong with the module is told as it is, not as a module that is missing', async () => {
    const builder = Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ policies: { class: { rate: 0 } } })],
      controllers: [CatsController],
      providers: [CatsService],
    });
    await expect(builder.compile()).rejects.toThrow('policies.class.rate: ');
  });
});

describe('RateLimitTestingModule', () => {
  async function start(): Promise<INestApplication> {
    const module = await Test.createTestingModule({
      imports: [RateLimitTestingModule],
      controllers: [CatsController],
      providers: [CatsService],
    }).compile();
    const app = module.createNestApplication({ logger: false });
    apps.push(app);
    await app.listen(0, '127.0.0.1');
    return app;
  }

  it('starts an application whose policies nobody has defined, and limits nothing', async () => {
    const app = await start();
    const url = await app.getUrl();
    const seen = new Set<string>();
    for (let i = 0; i < 20; i++) {
      const response = await fetch(url);
      seen.add(`${response.status} ${await response.text()} ${response.headers.get('ratelimit')}`);
    }
    expect([...seen]).toEqual(['200 a cat null']);
  });

  it('protects nothing: calls wait for no slot, and meet no deadline', async () => {
    const app = await start();
    const protection = app.get(Protection);
    const release: (() => void)[] = [];
    const work = () => new Promise<void>((resolve) => release.push(resolve));
    const calls = [protection.run('db', work), protection.run('db', work)];
    await new Promise((resolve) => setImmediate(resolve));
    expect(release).toHaveLength(2);
    for (const one of release) one();
    await Promise.all(calls);
  });

  it('has all that an application may inject', async () => {
    const app = await start();
    expect(app.get(RateLimiter)).toBeInstanceOf(NoopRateLimiter);
    expect(app.get(RateLimitConfig)).toBeDefined();
    expect(app.get(Degradation)).toBeDefined();
    const limiter = app.get(RateLimiter);
    expect(await limiter.tryAcquire({ policy: 'any', key: 'k', cost: 1e6 })).toMatchObject({
      allowed: true,
      delayMs: 0,
    });
  });

  it('lets modules bring policies along', async () => {
    const module = await Test.createTestingModule({
      imports: [RateLimitTestingModule, RateLimitModule.forFeature({ cats: { rate: 1 } })],
    }).compile();
    await expect(module.init()).resolves.toBeDefined();
    await module.close();
  });

  it('says so where it stands beside what it takes the place of', async () => {
    @Module({ imports: [RateLimitModule.forRoot()] })
    class AppModule {}
    const builder = Test.createTestingModule({ imports: [RateLimitTestingModule, AppModule] });
    await expect(builder.compile()).rejects.toThrow(
      'RateLimitTestingModule stands beside RateLimitModule.forRoot in this application, and takes its place: ' +
        'import one of them only, or switch the limits of the whole application off with ' +
        'overrideRateLimits(builder, { enabled: false })',
    );
  });
});
