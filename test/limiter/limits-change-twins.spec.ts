import fc from 'fast-check';
import {
  createRateLimiter,
  type PolicyFields,
  type PolicyInput,
  type Rate,
  type RateLimiter,
} from 'nestjs-weir';
import { deepFreeze } from '../../lib/common/immutable.js';
import { shared } from '../../lib/config/document/shared.js';
import { now } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';

type Policies = Record<string, PolicyFields>;

const name = fc.constantFrom('p', 'q', 'toString', '7', 'late');
const policy = fc.record<PolicyFields>(
  {
    rate: fc.constantFrom<Rate>(2, 5, '5/min'),
    cost: fc.constantFrom(1, 2),
    algorithm: fc.constantFrom('token-bucket', 'sliding-window'),
    tiers: fc.constantFrom<Record<string, number>>({ vip: 9 }, { vip: 3, low: 2 }),
    shadow: fc.boolean(),
  },
  { requiredKeys: ['rate'] },
);
/** In any order, which is another place for the same policy. */
const policies = fc
  .uniqueArray(fc.tuple(name, policy), { selector: ([one]) => one, maxLength: 5 })
  .map((entries): Policies => Object.fromEntries(entries));

const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('prepare' as const), policies }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('commit' as const), which: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('define' as const), policy }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('time' as const), ms: fc.nat(2000) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      ...{ do: fc.constant('take' as const), name },
      tier: fc.constantFrom(undefined, 'vip', 'low'),
    }),
  },
);

type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** A limiter, and the changes that were prepared and not installed yet, oldest first. */
class Twin {
  readonly limiter: RateLimiter;
  private readonly prepared: (() => void)[] = [];
  private revision = 0;

  constructor(
    clock: ManualClock,
    private readonly given: (policies: Policies) => Policies,
    private readonly afterwards: (policies: Policies) => void,
  ) {
    this.limiter = createRateLimiter({ clock, policies: { p: { rate: 5 }, q: { rate: 2 } } });
  }

  run(one: Step): unknown {
    const { limiter, prepared } = this;
    switch (one.do) {
      case 'prepare': {
        const set = this.given(one.policies);
        prepared.push(limiter.prepare({ revision: ++this.revision, policies: set }));
        return this.afterwards(set);
      }
      case 'commit':
        return prepared.splice(one.which, 1)[0]?.();
      case 'define':
        return outcome(() => limiter.define({ late: one.policy as PolicyInput }));
      case 'take':
        return outcome(() =>
          now(limiter.tryAcquire({ policy: one.name, key: 'k', ...tierOf(one.tier) })),
        );
      case 'time':
        return undefined;
    }
  }

  /** All that can be seen of it from outside. */
  view(): unknown {
    const { limiter } = this;
    const infos = limiter.policyNames().map((one) => limiter.policy(one));
    return { revision: limiter.revision, infos, stats: limiter.stats() };
  }
}

const tierOf = (tier: string | undefined) => (tier === undefined ? {} : { tier });

function outcome(make: () => unknown): unknown {
  try {
    return make();
  } catch (error) {
    return String(error);
  }
}

describe('a change of limits that shares its policies with the one before', () => {
  it('does what it would do without that, in whatever order changes are prepared and installed', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: 'max' }), async (steps) => {
        const clock = new ManualClock();
        let known: Policies | undefined;
        const frozen = (set: Policies): Policies =>
          (known = deepFreeze(shared(known, structuredClone(set))));
        const short = new Twin(clock, frozen, () => {});
        // Its callers make each set anew, and use the object for something else later on.
        const long = new Twin(clock, structuredClone<Policies>, (set) => {
          for (const one of Object.values(set)) one.rate = 1;
        });
        for (const one of steps) {
          if (one.do === 'time') clock.advance(one.ms);
          expect(short.run(one)).toEqual(long.run(one));
          expect(short.view()).toEqual(long.view());
        }
        await Promise.all([short.limiter.close(), long.limiter.close()]);
      }),
      { numRuns: 150 },
    );
  });
});
