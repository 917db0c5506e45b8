import { InvalidConfigError } from '../../lib/common/errors.js';
import { checkDocument, checkLayer } from '../../lib/config/schema/check.js';
import { type ConfigDocument } from '../../lib/config/schema/document.schema.js';
import { documentOf, limitsOf } from '../../lib/config/schema/limits-of.js';
import { checkPolicy } from '../../lib/limiter/policy-options.js';
import { AppOptions, checkQuota, type QuotaOptions } from '../../lib/limiter/quota-options.js';
import { faultsOf } from './faults.js';

const api = { rate: '100/min' } as const;

describe('a document within the size that is allowed', () => {
  const many = <T>(count: number, value: T): Record<string, T> =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`name${i}`, value]));

  it.each<[string, object, string]>([
    ['19,000 sections that are none', many(19_000, 1), '19000 faults'],
    ['19,000 fields that a policy has not', { policies: { api: many(19_000, 1) } }, '19000 faults'],
    ['6,000 policies with a fault', { policies: many(6000, { ...api, kye: 'ip' }) }, '6000 faults'],
    [
      '1,000 profiles and policies',
      { policies: many(1000, api), profiles: many(1000, { policies: { name1: api } }) },
      'profiles: expected no more than 64 profiles, got 1000',
    ],
    [
      '1,000 of both, with faults',
      {
        policies: many(1000, { rate: -1 }),
        profiles: many(1000, { policies: { name1: { x: 1 } } }),
      },
      '2000 faults',
    ],
  ])('is refused in no time: %s', (_, document, fault) => {
    const begun = process.cpuUsage();
    expect(() => checkDocument(document)).toThrow(fault);
    expect(process.cpuUsage(begun).user / 1000).toBeLessThan(2000);
  });

  it('has no message of its own size', () => {
    const document = { ['x'.repeat(1_000_000)]: 1 };
    expect(() => checkDocument(document)).toThrow(/^[^]{1,3000}$/);
  });

  it('is taken in no time: 64 profiles and 1,000 policies', () => {
    const begun = process.cpuUsage();
    checkDocument({ policies: many(1000, api), profiles: many(64, { policies: { name1: api } }) });
    expect(process.cpuUsage(begun).user / 1000).toBeLessThan(2000);
  });
});

describe('a document that is right', () => {
  const whole: ConfigDocument = {
    version: 3,
    cluster: { id: 'eu', capacity: 1000, pace: '20ms', maxCost: 5, reserveTarget: 10 },
    apps: { checkout: { guaranteed: 500, burst: 800, burstDuration: '30s', priority: 0 } },
    policies: {
      api: { ...api, tiers: { vip: 500, partner: { rate: '1000/min', burst: 50 } } },
      login: { rate: 5, period: '1m', key: ['ip', { header: 'x-client' }], early: true },
    },
    profile: 'promo',
    profiles: { promo: { policies: { api: { rate: '500/min' } } } },
    degradation: { level1Ttl: '30s', resources: { 'Cat.find': { coreFields: ['name'] } } },
    protection: {
      db: { preset: 'database', breaker: { openFor: '5s' }, rate: 'api' },
      cache: 'redis',
    },
  };

  it('comes back as it is, as a frozen copy', () => {
    const checked = checkDocument(whole);
    expect(checked).toEqual(whole);
    expect(checked).not.toBe(whole);
    expect(Object.isFrozen(checked.policies!['api']!.tiers)).toBe(true);
    expect(Object.isFrozen(whole)).toBe(false);
  });

  it('becomes what the limiter takes', () => {
    const { policies, quota } = limitsOf(checkDocument(whole));
    expect(quota).toEqual({
      clusterId: 'eu',
      cluster: { capacity: 1000 },
      apps: whole.apps,
      maxCost: 5,
      local: { pace: '20ms', reserveTarget: 10 },
    });
    expect(policies['login']).toEqual({ rate: 5, period: '1m' });
    expect(checkPolicy('api', policies['api']!).limits.get('partner')!.capacity).toBe(50);
  });

  it('needs neither a cluster nor apps', () => {
    expect(limitsOf(checkDocument({ policies: { api } })).quota).toBeUndefined();
    const { quota } = limitsOf(checkDocument({ apps: { a: { guaranteed: 5 } } }));
    expect(checkQuota(quota!).figures.cluster).toBeUndefined();
  });

  it('may leave out fields by setting them to undefined', () => {
    expect(checkDocument({ policies: { api: { ...api, burst: undefined } } })).toEqual({
      policies: { api },
    });
  });
});

describe('the options of the code', () => {
  it('are a document, without what only code can say', () => {
    const quota: QuotaOptions = {
      cluster: { capacity: 100, burstRatio: 2 },
      clusterId: 'eu',
      apps: { a: { guaranteed: 50 } },
      maxCost: 2,
      local: { leaseTtl: '2s' },
    };
    const login = { rate: 5, key: ['ip', () => 'x'], skipIf: () => true, early: false };
    const document = documentOf({ policies: { api, login }, quota });
    expect(document).toEqual({
      cluster: { id: 'eu', capacity: 100, burstRatio: 2, maxCost: 2, leaseTtl: '2s' },
      apps: { a: { guaranteed: 50 } },
      policies: { api, login: { rate: 5, early: false } },
    });
    expect(limitsOf(checkDocument(document))).toEqual({
      policies: { api, login: { rate: 5 } },
      quota,
    });
  });

  it('may be none at all', () => {
    expect(documentOf({})).toEqual({});
    expect(documentOf({ policies: {} })).toEqual({});
  });

  it('may be an object of a class', () => {
    const app = Object.assign(new AppOptions(), { guaranteed: 5 });
    expect(checkDocument({ apps: { app } }).apps!['app']!.burstDuration).toBe('60s');
  });
});

describe('a document that is wrong', () => {
  const empty =
    'the document: is empty; expected at least one of cluster, apps, policies, degradation, protection, overload, alerts ' +
    '(or allowEmpty, if that is meant)';
  const key = "'ip', 'user', 'route', 'global', { header }, { param }, or a list of these, got";

  it.each<[string, unknown, string[]]>([
    ['nothing', null, [empty]],
    ['an empty object', {}, [empty]],
    ['a version alone', { version: 2 }, [empty]],
    ['a list', [], ['the document: expected an object with version, cluster, apps…, got []']],
    ['a text', 'x', ['the document: expected an object with version, cluster, apps…, got "x"']],
    [
      'misspelt fields, at any depth',
      { polices: {}, policies: { api: { ...api, brust: 3, tiers: { vip: { rat: 2, rate: 1 } } } } },
      [
        "policies.api.tiers.vip.rat: no such field; did you mean 'rate'?",
        "policies.api.brust: no such field; did you mean 'burst'?",
        "polices: no such field; did you mean 'policies'?",
      ],
    ],
    [
      'the quota as the options of the module have it',
      { quota: { apps: { reports: { burst: 6000 } } }, policies: { api } },
      ["quota: no such field; did you mean 'apps.reports.burst'?"],
    ],
    [
      'the same in a profile',
      { policies: { api }, profiles: { sale: { quota: { cluster: { capacity: 5, id: 'a' } } } } },
      ["profiles.sale.quota: no such field; did you mean 'profiles.sale.cluster'?"],
    ],
    [
      'a field that is like none',
      { apps: { a: { guaranteed: 1, colour: 'red' } } },
      [
        'apps.a.colour: no such field; there are guaranteed, burst, burstDuration, priority and elastic',
      ],
    ],
    [
      'figures that are none',
      { policies: { api: { rate: 'fast', period: '5 parsecs', cost: 0.5, shadow: 'no' } } },
      [
        "policies.api.rate: expected a number above 0 or a text like '100/s', '100/min', '1000/5m', got \"fast\"",
        "policies.api.period: expected a duration from 1 ms to 365 days: milliseconds or a text like '250ms', " +
          "'60s', '5m', '1h', '1d', got \"5 parsecs\"",
        'policies.api.cost: expected a whole number from 1 to 1000000000000, got 0.5',
        'policies.api.shadow: expected true or false, got "no"',
      ],
    ],
    [
      'names that are none',
      { policies: { 'a b': api, 'a.b': { rate: 0 } } },
      [
        'policies["a b"]: expected a name of up to 64 letters, digits and _ . -, got "a b"',
        "policies[\"a.b\"].rate: expected a number above 0 or a text like '100/s', '100/min', '1000/5m', got 0",
      ],
    ],
    [
      'keys that are none',
      { policies: { a: { ...api, key: ['ip', 'mood'] }, b: { ...api, key: { heder: 'x' } } } },
      [
        `policies.a.key[1]: expected ${key} "mood"`,
        `policies.b.key: expected ${key} {"heder":"x"}`,
      ],
    ],
    [
      'options that the algorithm does not look at',
      { policies: { p: { rate: 5, mode: 'shaper', maxDelay: '1s', subWindows: 3, cost: 9 } } },
      [
        'policies.p.mode: expected no mode without algorithm: \'leaky-bucket\', got "shaper"',
        'policies.p.maxDelay: expected mode: \'shaper\' beside it, got "1s"',
        "policies.p.subWindows: expected algorithm: 'sliding-window' beside it, got 3",
        'policies.p.cost: expected at most 5, all that the limit ever holds (raise its burst), got 9',
      ],
    ],
    [
      'tiers that cannot be',
      {
        policies: { p: { ...api, defaultTier: 'x', tiers: { default: 3, 'a.b': { burst: 0.5 } } } },
      },
      ['policies.p.tiers["a.b"].burst: expected a whole number from 1 to 1000000000000, got 0.5'],
    ],
    [
      'tiers that clash, and one that is not there',
      { policies: { p: { ...api, defaultTier: 'x', tiers: { default: 3 } } } },
      [
        "policies.p.tiers.default: expected another name; 'default' is the policy's own rate, got 3",
        'policies.p.defaultTier: expected one of \'default\', got "x"',
      ],
    ],
    [
      'keys that cannot be known so early',
      { policies: { p: { ...api, early: true, key: 'user', anonymous: 'user' } } },
      [
        'policies.p.early: expected a key of ip, header or global beside it, got true',
        'policies.p.anonymous: expected a key that needs no user, got "user"',
      ],
    ],
    [
      'apps that are wrong, each by itself',
      { cluster: { capacity: 10 }, apps: { a: { guaranteed: 80, burst: 50 }, b: {}, c: 5 } },
      [
        'apps.c: expected an object with guaranteed, burst, burstDuration…, got 5',
        'apps.a.burst: expected at least the guarantee of 80, got 50',
        'apps.b.guaranteed: expected a whole number from 1 to 1000000000000, got nothing',
      ],
    ],
    [
      'guarantees over the capacity',
      { cluster: { capacity: 100 }, apps: { a: { guaranteed: 80 }, b: { guaranteed: 20 } } },
      [
        'apps: expected guarantees of no more than 90 in all (capacity 100 less 0.1 of it), got 100',
      ],
    ],
    [
      'a cluster without capacity',
      { cluster: { burstRatio: 2 }, apps: { a: { guaranteed: 80 } } },
      ['cluster.capacity: expected a whole number from 1 to 1000000000000, got nothing'],
    ],
    [
      'a capacity without apps',
      { cluster: { capacity: 100 } },
      ['apps: expected at least one app, got {}'],
    ],
    [
      'a profile that is not there',
      { policies: { api }, profile: 'promi', profiles: { promo: {} } },
      ['profile: expected one of normal, promo, got "promi"; did you mean \'promo\'?'],
    ],
    [
      'profiles that could not come into force',
      {
        policies: { api: { rate: 5 } },
        profiles: { promo: { policies: { api: { cost: 9 } } }, sale: { profile: 'x' } },
      },
      [
        'profiles.sale.profile: no such field; there are cluster, apps, policies, degradation, protection, overload and alerts',
        'profiles.promo: in force, policies.api.cost: expected at most 5, all that the limit ever holds (raise its burst), got 9',
      ],
    ],
    [
      'a profile whose key would be of two kinds in force',
      {
        policies: { api: { ...api, key: { param: 'query.q' } }, web: { rate: 0 } },
        profiles: {
          promo: { policies: { api: { key: { header: 'x-shop' } }, web: { key: 'ip' } } },
          sale: { policies: { api: { key: [{ header: 'x-shop' }] } } },
        },
      },
      [
        "policies.web.rate: expected a number above 0 or a text like '100/s', '100/min', '1000/5m', got 0",
        `profiles.promo: in force, policies.api.key: expected ${key} {"param":"query.q","header":"x-shop"}`,
      ],
    ],
    [
      'a policy that is not there',
      { policies: { database: api }, protection: { db: { rate: 'databse' } } },
      [
        'protection.db.rate: expected the name of one of the policies, got "databse"; did you mean \'database\'?',
      ],
    ],
    [
      'steps that do not rise',
      { degradation: { recovery: { steps: [30, 10, 100] } } },
      [
        'degradation.recovery.steps: expected percentages that rise, the last of them 100, such as ' +
          '[10, 30, 50, 100], got [30,10,100]',
      ],
    ],
    [
      'what has no effect yet',
      {
        policies: { api },
        adaptive: { enabled: true },
        profiles: { promo: { adaptive: {} } },
      },
      ['profiles.promo.adaptive: adaptive is now overload', 'adaptive: adaptive is now overload'],
    ],
    [
      'alerts that can never fire, or never say what is meant',
      {
        policies: { api },
        alerts: {
          resolveAt: 1.5,
          seconds: { qpsRise: { baseline: '10s' }, errorRate: { above: 2 } },
          hours: { peek: {} },
          states: { storeAway: { severity: 'loud' } },
          mute: { qpsFall: {}, peak: { until: 'tomorrow' } },
        },
      },
      [
        'alerts.resolveAt: expected a number above 0, at most 1, got 1.5',
        'alerts.seconds.errorRate.above: expected a number above 0, at most 1, got 2',
        "alerts.hours.peek: no such field; did you mean 'peak'?",
        "alerts.states.storeAway.severity: expected one of 'info', 'warning', 'critical', got \"loud\"",
        'alerts.mute.qpsFall: expected one of qpsRise, errorRate, p99Rise, denialRise, slowCalls, degraded, peak, ' +
          'storeAway, overload, line, nodeSilent, configBehind, breakerOpen, levelHeld, relapse, got "qpsFall"',
        'alerts.mute.peak.until: expected an instant like \'2026-11-17T14:00:00Z\', got "tomorrow"',
      ],
    ],
    [
      'a baseline that is not longer than its window',
      { policies: { api }, alerts: { seconds: { qpsRise: { baseline: '10s' } } } },
      [
        'alerts.seconds.qpsRise.baseline: expected a duration longer than window, from 1 to 178 min, got "10s"',
      ],
    ],
    [
      'what is not JSON',
      { policies: { p: { rate: NaN, skipIf: () => true }, q: new Date(0) }, apps: { a: 5n } },
      [
        'policies.p.rate: expected a value that JSON can carry, got NaN',
        'policies.p.skipIf: expected a value that JSON can carry, got function skipIf',
        'policies.q: expected a value that JSON can carry, got "1970-01-01T00:00:00.000Z"',
        'apps.a: expected a value that JSON can carry, got 5',
      ],
    ],
    [
      'null where a value should be',
      { policies: { api: null } },
      ['policies.api: expected an object with algorithm, rate, period…, got null'],
    ],
  ])('%s', (_, document, faults) => {
    expect(faultsOf(() => checkDocument(document))).toEqual(faults);
  });

  it('says all of it in one error, by path, value and what would be right', () => {
    const error = errorOf({ policies: { api: { rate: -1, cost: 0 } } });
    expect(error).toMatchObject({ name: 'InvalidConfigError', code: 'INVALID_CONFIG' });
    expect(error.issues.map(({ path, value }) => [path, value])).toEqual([
      ['policies.api.rate', -1],
      ['policies.api.cost', 0],
    ]);
    expect(error.message).toMatch(
      /^2 faults in the configuration:\n {2}policies.api.rate: .*\n {2}/,
    );
    expect(error.issues[1]!.expected).toBe('a whole number from 1 to 1000000000000');
  });

  it('does not repeat the value of a field that does not exist, nor all of a long one', () => {
    const error = errorOf({ policies: { api: { ...api, password: 'hunter2' } } });
    expect(JSON.stringify(error.issues)).not.toContain('hunter2');
    expect(errorOf({ policies: { api: { rate: 'x'.repeat(5000) } } }).message.length).toBeLessThan(
      300,
    );
  });

  it.each(['__proto__', 'constructor', 'prototype'])('%s as a name', (name) => {
    const document: unknown = JSON.parse(
      `{ "policies": { "${name}": { "rate": 1 }, "a": { "rate": 1 } } }`,
    );
    const faults = [`policies.${name}: no field may be called so; expected another name`];
    expect(faultsOf(() => checkDocument(document))).toEqual(faults);
    expect(faultsOf(() => checkLayer(document))).toEqual(faults);
    expect(({} as Record<string, unknown>)['rate']).toBeUndefined();
  });

  it('more than a mebibyte, also if it is short until it is looked at', () => {
    const large = {
      policies: Object.fromEntries(
        Array.from({ length: 3000 }, (_, i) => [`p${i}`, { rate: 'x'.repeat(400) }]),
      ),
    };
    const tooLarge = ['the document: is too large; expected no more than 1048576 bytes'];
    expect(faultsOf(() => checkDocument(large))).toEqual(tooLarge);
    let bomb: unknown = [];
    for (let i = 0; i < 30; i++) bomb = [bomb, bomb];
    const tooMany = ['the document: is too large; expected no more than 20000 keys'];
    expect(faultsOf(() => checkDocument({ policies: bomb }))).toEqual(tooMany);
  });

  it('too deep, or without end', () => {
    const ring: Record<string, unknown> = {};
    ring['policies'] = ring;
    const [fault] = faultsOf(() => checkDocument(ring));
    expect(fault).toContain('expected no more than 32 levels');
  });
});

describe('a layer', () => {
  it('need not be complete, and may remove', () => {
    const layer = { apps: { checkout: { burst: 5 } }, policies: { api: null, x: { burst: null } } };
    expect(checkLayer(layer)).toEqual(layer);
    expect(faultsOf(() => checkDocument({ apps: layer.apps }))).toHaveLength(1);
  });

  it('must have the right form all the same', () => {
    expect(faultsOf(() => checkLayer({ apps: { a: { bursts: 5 } }, polices: null }))).toEqual([
      "apps.a.bursts: no such field; did you mean 'burst'?",
    ]);
  });

  it('is empty only if that is meant', () => {
    for (const empty of [{}, null, undefined, { version: 1 }]) {
      expect(faultsOf(() => checkLayer(empty))).toHaveLength(1);
      expect(checkLayer(empty, { allowEmpty: true })).toEqual(empty ?? {});
      expect(checkDocument(empty, { allowEmpty: true })).toEqual(empty ?? {});
    }
  });
});

function errorOf(document: unknown): InvalidConfigError {
  try {
    checkDocument(document);
  } catch (error) {
    if (error instanceof InvalidConfigError) return error;
  }
  throw new Error('it was taken for right');
}
