import { Controller, Get, Injectable, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  createRateLimiter,
  InvalidArgumentError,
  RateLimit,
  RateLimitCost,
  RateLimitModule,
  SkipRateLimit,
  type RateLimiter,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { PolicyCatalog } from '../../lib/guards/policy-catalog.js';
import { type RoutePlan } from '../../lib/guards/route-plan.js';
import {
  RouteTable,
  type NamedHandler,
  type RouteTableSettings,
} from '../../lib/guards/route-table.js';

const POLICIES = { a: { rate: 1 }, b: { rate: 1 }, c: { rate: 1 }, 'v1.d': { rate: 1 } };
const QUOTA = { apps: { app: { guaranteed: 10 } } };

const limiters: RateLimiter[] = [];

function tableOf(settings: Partial<RouteTableSettings> = {}): RouteTable {
  const limiter = createRateLimiter();
  limiters.push(limiter);
  const catalog = new PolicyCatalog(limiter, { user: undefined, ipv6Prefix: 64 });
  catalog.define(POLICIES);
  return new RouteTable(catalog, limiter, {
    ...{ apply: undefined, hasQuota: false, maxCost: 10, handlers: () => [], pathsOf: () => [] },
    ...settings,
  });
}

function planOf(type: Type, method: string, settings?: Partial<RouteTableSettings>): RoutePlan {
  return tableOf(settings).planOf(type, handlerOf(type, method));
}

function handlerOf(type: Type, method: string): () => unknown {
  return (type.prototype as Record<string, () => unknown>)[method]!;
}

function namesOf(plan: RoutePlan): string[] {
  return [...plan.policies.map(({ name }) => name), ...(plan.usesQuota ? ['quota'] : [])];
}

afterAll(async () => {
  for (const limiter of limiters) await limiter.close();
});

@RateLimit('a')
@RateLimitCost(2)
class Limited {
  plain(): void {}

  @RateLimit('a')
  same(): void {}

  @RateLimit('b')
  @RateLimit('c')
  more(): void {}

  @RateLimit({ rate: 1 })
  @RateLimit({ rate: 2 })
  inline(): void {}

  @SkipRateLimit()
  skipped(): void {}

  @RateLimit('b')
  @SkipRateLimit('a')
  without(): void {}

  @RateLimitCost(5)
  dear(): void {}
}

class Unlimited {
  plain(): void {}

  @RateLimit('b')
  limited(): void {}
}

@RateLimit({ rate: 1 })
class Inline {
  one(): void {}
  two(): void {}
}

describe('the plan of a handler', () => {
  it.each<[Type, string, string[]]>([
    [Limited, 'plain', ['a']],
    [Limited, 'same', ['a']],
    [Limited, 'more', ['a', 'b', 'c']],
    [Limited, 'skipped', []],
    [Limited, 'without', ['b']],
    [Unlimited, 'plain', []],
    [Unlimited, 'limited', ['b']],
  ])('%p.%s', (type, method, expected) => {
    const plan = planOf(type, method);
    expect(namesOf(plan)).toEqual(expected);
    expect(plan.isEmpty).toBe(expected.length === 0);
  });

  it.each<[Type, string, string[]]>([
    [Limited, 'plain', ['b', 'a']],
    [Limited, 'more', ['b', 'a', 'c']],
    [Limited, 'skipped', []],
    [Limited, 'without', ['b']],
    [Unlimited, 'plain', ['b']],
    [Unlimited, 'limited', ['b']],
  ])('%p.%s where a policy is applied to all', (type, method, expected) => {
    expect(namesOf(planOf(type, method, { apply: ['b'] }))).toEqual(expected);
  });

  it('asks for policies of its own under the name of the method, also those of its class', () => {
    expect(namesOf(planOf(Limited, 'inline'))).toEqual(['a', 'Limited.inline', 'Limited.inline.2']);
    const table = tableOf();
    const [one, two] = ['one', 'two'].map((method) =>
      table.planOf(Inline, handlerOf(Inline, method)),
    );
    expect([namesOf(one!), namesOf(two!)]).toEqual([['Inline.one'], ['Inline.two']]);
  });

  it('is made once', () => {
    const table = tableOf();
    const plan = table.planOf(Limited, handlerOf(Limited, 'inline'));
    expect(table.planOf(Limited, handlerOf(Limited, 'inline'))).toBe(plan);
  });

  describe('of classes of the same name', () => {
    const twins = ['a', 'b'].map((path) => {
      class Twin {
        @RateLimit({ rate: 1 })
        list(): void {}
      }
      return { type: Twin, path, handler: handlerOf(Twin, 'list'), name: 'list' };
    });
    const pathsOf: RouteTableSettings['pathsOf'] = (type) =>
      twins.filter((twin) => twin.type === type);
    const namesBy = (table: RouteTable, order: readonly NamedHandler[]): string[] =>
      order.flatMap(({ type, handler }) => namesOf(table.planOf(type, handler)));

    it('is named by where each is served, not by which is found first', () => {
      const [forth, back] = [twins, twins.toReversed()].map((order) =>
        namesBy(tableOf({ handlers: () => order, pathsOf }), order),
      );
      expect(back!.toReversed()).toEqual(forth);
      expect(new Set(forth).size).toBe(2);
      for (const name of forth!) expect(name).toMatch(/^Twin\.list-[0-9a-f]{8}$/);
    });

    it('is named so too if the second comes with a module that is loaded later', () => {
      const names = namesBy(tableOf({ pathsOf }), twins);
      expect(names).toEqual(['Twin.list', expect.stringMatching(/^Twin\.list-[0-9a-f]{8}$/)]);
    });

    it('is one for each, also where they are served at one place', () => {
      expect(new Set(namesBy(tableOf({ handlers: () => twins }), twins)).size).toBe(2);
    });

    it('has the plain name if it is the same class in two modules', () => {
      const [one] = twins;
      const table = tableOf({ handlers: () => [one!, one!], pathsOf });
      expect(namesBy(table, [one!])).toEqual(['Twin.list']);
    });

    it('has a name that the limiter takes, however long those of class and method are', () => {
      const [long, longer] = ['a', 'b'].map((end) => {
        const name = 'list'.repeat(20) + end;
        class Twin {
          [name](): void {}
        }
        RateLimit({ rate: 1 })(Twin.prototype, name, { value: handlerOf(Twin, name) });
        return { type: Twin, path: end, handler: handlerOf(Twin, name), name };
      });
      const table = tableOf({ handlers: () => [long!, longer!] });
      expect(new Set(namesBy(table, [long!, longer!])).size).toBe(2);
    });
  });

  it('is one for each class that inherits a handler, and takes the limits over', () => {
    class Child extends Limited {}
    @RateLimit('c')
    class OtherChild extends Limited {}
    const table = tableOf();
    const plans = [Child, OtherChild].map((type) => table.planOf(type, handlerOf(type, 'inline')));
    expect(plans.map(namesOf)).toEqual([
      ['a', 'Child.inline', 'Child.inline.2'],
      ['c', 'OtherChild.inline', 'OtherChild.inline.2'],
    ]);
  });

  it('has the name of the property, whatever the function is called', () => {
    class Wrapped {
      method(): void {}
    }
    const anonymous = (
      () => () =>
        undefined
    )();
    RateLimit({ rate: 1 })(Wrapped.prototype, 'method', { value: anonymous });
    Object.defineProperty(Wrapped.prototype, 'method', { value: anonymous });
    expect(tableOf().planOf(Wrapped, anonymous).id).toBe('Wrapped.method');
  });

  it('takes the cost of the method before that of the class', () => {
    expect(planOf(Limited, 'plain').cost).toBe(2);
    expect(planOf(Limited, 'dear').cost).toBe(5);
  });

  it('lets a method that is limited by itself be limited in a class that is not', () => {
    @SkipRateLimit()
    class Skipping {
      plain(): void {}

      @RateLimit('b')
      limited(): void {}
    }
    expect(namesOf(planOf(Skipping, 'plain', { apply: ['a'] }))).toEqual([]);
    expect(namesOf(planOf(Skipping, 'limited', { apply: ['a'] }))).toEqual(['a', 'b']);
  });
});

describe("the app's quota", () => {
  @RateLimit('a', { quota: false })
  class Mixed {
    plain(): void {}

    @RateLimit('b', { quota: true })
    with(): void {}
  }

  class QuotaOnly {
    @RateLimit()
    only(): void {}

    @RateLimit('a')
    @SkipRateLimit('a')
    afterAll(): void {}

    @RateLimit({ rate: 1, quota: false })
    without(): void {}
  }

  it.each<[Type, string, string[]]>([
    [Limited, 'plain', ['a', 'quota']],
    [Limited, 'skipped', []],
    [Unlimited, 'plain', []],
    [Mixed, 'plain', ['a']],
    [Mixed, 'with', ['a', 'b', 'quota']],
    [QuotaOnly, 'only', ['quota']],
    [QuotaOnly, 'afterAll', ['quota']],
    [QuotaOnly, 'without', ['QuotaOnly.without']],
  ])('%p.%s', (type, method, expected) => {
    expect(namesOf(planOf(type, method, { hasQuota: true }))).toEqual(expected);
  });

  it('alone may be applied to all', () => {
    const settings = { hasQuota: true, apply: 'quota' } as const;
    expect(namesOf(planOf(Unlimited, 'plain', settings))).toEqual(['quota']);
    expect(namesOf(planOf(Mixed, 'plain', settings))).toEqual(['a']);
  });

  it('cannot be asked for where there is none', () => {
    expect(() => planOf(QuotaOnly, 'only')).toThrow(/@RateLimit\(\) on QuotaOnly\.only/);
    expect(() => planOf(Unlimited, 'plain', { apply: 'quota' })).toThrow(InvalidArgumentError);
  });
});

describe('at start', () => {
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
    const failed = start(Limited, { ipv6Prefix: ipv6Prefix as number });
    await expect(failed).rejects.toThrow(/ipv6Prefix/);
  });
});
