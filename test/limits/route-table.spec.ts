import { type Type } from '@nestjs/common';
import { InvalidArgumentError, RateLimit, RateLimitCost, SkipRateLimit } from 'nestjs-weir';
import { type NamedHandler } from '../../lib/requests/by-handler.js';
import { RouteTable, type RouteTableSettings } from '../../lib/limits/route-table.js';
import { closeLimiters, handlerOf, namesOf, planOf, tableOf } from './route-tables.js';

afterAll(closeLimiters);

@RateLimit('a')
@RateLimitCost(2)
class Limited {
  plain(): void {}

  @RateLimit('a')
  same(): void {}

  @RateLimit('b')
  @RateLimit('c')
  more(): void {}

  @RateLimit({ rate: 10 })
  @RateLimit({ rate: 20 })
  inline(): void {}

  @SkipRateLimit()
  skipped(): void {}

  @RateLimit('b')
  @SkipRateLimit('a')
  without(): void {}

  @RateLimitCost(5)
  dear(): void {}

  @RateLimit('b', { instead: 'a' })
  other(): void {}

  @RateLimit({ rate: 10, instead: ['a', 'c'] })
  otherInline(): void {}
}

@RateLimit({ name: 'class-wide', rate: 2 })
@RateLimit('c', { instead: 'a', quota: false })
class Named {
  plain(): void {}

  @RateLimit({ name: 'own', rate: 5 }, { instead: 'class-wide' })
  higher(): void {}

  @RateLimit('b', { instead: 'd' })
  unknown(): void {}

  @RateLimit('b')
  @RateLimit('a', { instead: 'b' })
  ownNeighbour(): void {}
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

    it.each([
      ['modules', class First {}, class Second {}, [() => () => 'a', () => () => 'a']],
      ['what they say', class Only {}, class Only {}, [() => () => 'a', () => () => 'b']],
    ] as const)('is named by %s where they are served at one place', (_, First, Second, bodies) => {
      const gateways = [First, Second].map((module, i) => {
        class Twin {
          declare list: () => string;
        }
        Object.defineProperty(Twin.prototype, 'list', { value: bodies[i]!() });
        const descriptor = Object.getOwnPropertyDescriptor(Twin.prototype, 'list')!;
        RateLimit({ rate: 1 })(Twin.prototype, 'list', descriptor);
        return { module, type: Twin, handler: handlerOf(Twin, 'list'), name: 'list' };
      });
      const [forth, back] = [gateways, gateways.toReversed()].map((order) =>
        namesBy(tableOf({ handlers: () => order }), order),
      );
      expect(back!.toReversed()).toEqual(forth);
      expect(new Set(forth).size).toBe(2);
      for (const name of forth!) expect(name).toMatch(/^Twin\.list-[0-9a-f]{8}$/);
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

  describe('with one policy instead of another', () => {
    it.each<[Type, string, string[], string[]]>([
      [Limited, 'other', [], ['b']],
      [Limited, 'other', ['c'], ['c', 'b']],
      [Limited, 'otherInline', ['c'], ['Limited.otherInline']],
      [Named, 'plain', ['a', 'b'], ['b', 'Named.plain', 'c']],
      [Named, 'higher', ['a'], ['c', 'Named.higher']],
    ])('%p.%s, with %j applied to all', (type, method, apply, expected) => {
      expect(namesOf(planOf(type, method, { apply }))).toEqual(expected);
    });

    it('asks for the figures of the one that took the place', () => {
      const { policies, nameOf } = planOf(Named, 'higher', { apply: ['a'] });
      expect(policies.map(({ name }) => nameOf(name))).toEqual(['c', 'own']);
    });

    it('leaves early ones out as well, and keeps what was said about the quota', () => {
      @RateLimit({ name: 'door', rate: 1, early: true }, { quota: false })
      class Door {
        plain(): void {}

        @RateLimit('a', { instead: 'door' })
        open(): void {}
      }
      const settings = { hasQuota: true };
      expect(planOf(Door, 'plain', settings).early()?.policies).toHaveLength(1);
      const open = planOf(Door, 'open', settings);
      expect([open.early(), namesOf(open)]).toEqual([undefined, ['a']]);
    });

    it.each<[Type, string, string[], string]>([
      [Named, 'unknown', ['a'], 'a, c, class-wide'],
      [Named, 'ownNeighbour', ['a'], 'a, c, class-wide'],
      [Limited, 'otherInline', [], 'a'],
      [Named, 'plain', ['b'], 'b'],
    ])('is refused where no such policy would hold: %p.%s, %j', (type, method, apply, known) => {
      expect(() => planOf(type, method, { apply })).toThrow(
        `that would hold here (${known}); an inline one is named by its 'name', got `,
      );
    });

    it('is refused where it is no name', () => {
      expect(() => RateLimit('a', { instead: 5 as never })).toThrow('@RateLimit.instead');
      expect(() => RateLimit('a', { insted: 'b' } as never)).toThrow('@RateLimit.insted');
    });
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

    @RateLimit({ rate: 10, quota: false })
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
