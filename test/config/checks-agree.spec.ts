import fc from 'fast-check';
import { durationMs, parseRate } from '../../lib/common/duration.js';
import { DURATION_PATTERN, RATE_PATTERN } from '../../lib/common/schema-fields.js';
import { mergePatch } from '../../lib/config/document/merge-patch.js';
import { checkDocument, checkLayer } from '../../lib/config/schema/check.js';
import { type ConfigDocument } from '../../lib/config/schema/document.schema.js';
import { limitsOf } from '../../lib/config/schema/limits-of.js';
import { createRateLimiter } from '../../lib/limiter/create-rate-limiter.js';
import { checkPolicy } from '../../lib/limiter/policy-options.js';
import { checkQuota } from '../../lib/limiter/quota-options.js';
import { applyPolicy, limitPart } from '../../lib/limits/route-policy.js';
import { checkDegradeModule } from '../../lib/degradation/degrade-module-options.js';
import { checkAlerts } from '../../lib/observability/alerts/rules.js';
import { checkOverload } from '../../lib/overload/settings.js';
import { Protection } from '../../lib/protection/protection.js';
import { type ResourcesInput } from '../../lib/protection/resource-options.js';
import { faultsOf } from './faults.js';

/** One set of rules: the document must not say no where the feature says yes, nor the other way round. */
describe('the document and the features agree', () => {
  const figure = fc.constantFrom(
    0,
    1,
    2,
    0.5,
    5,
    120,
    121,
    1e12,
    1e12 + 1,
    -1,
    '5/min',
    '5/x',
    true,
  );
  const span = fc.constantFrom(0, 1, 50, '1s', '5 min', '1d', '366d', 'soon', null);

  /** Something right, of which up to two fields are replaced. */
  const altered = (right: object, others: Record<string, fc.Arbitrary<unknown>>) =>
    fc
      .subarray(Object.keys(others), { maxLength: 2 })
      .chain((names) => fc.record(Object.fromEntries(names.map((name) => [name, others[name]!]))))
      .map((changes) => ({ ...right, ...changes }));

  it('on policies', () => {
    const key = fc.constantFrom<unknown>(
      ...['ip', 'user', 'route', 'global', 'moon', '', 7, null, [], {}],
      ...[['ip', 'user'], ['ip', 'moon'], { header: 'x-a' }, { header: '' }, { head: 'x' }],
      ...[{ param: 'query.q' }, { param: 0 }, { param: -1 }, { param: 0.5 }, { param: '' }],
      ...[{ header: 'x-a', param: 0 }, [{ header: 'x-a' }, 'global']],
    );
    const others = {
      algorithm: fc.constantFrom('token-bucket', 'leaky-bucket', 'sliding-window', 'guess'),
      rate: figure,
      period: span,
      burst: figure,
      mode: fc.constantFrom('policer', 'shaper', 'x'),
      maxDelay: span,
      subWindows: figure,
      cost: figure,
      tiers: fc.dictionary(fc.constantFrom('vip', 'default', 'a b', 'a.b'), figure),
      defaultTier: fc.constantFrom('vip', 'default', 'x'),
      scope: fc.constantFrom('fleet', 'node', 'x'),
      sync: fc.constantFrom('auto', 'exact', 'leased', 'x'),
      shadow: fc.constantFrom(true, false, 1),
      maxWaiters: figure,
      passThrough: fc.constantFrom<unknown>(
        ...[true, {}, { limit: 5 }, { default: 0.5, limit: '5/s' }, { default: 2, limit: 5 }],
        ...[{ vip: 1, limit: 5 }, { default: 0.5 }, { default: 0.5, limit: { rate: 'x' } }],
      ),
      key,
      anonymous: key,
      tier: fc.constantFrom('vip', 'default', 'gold', '', 5),
      early: fc.constantFrom(true, false, 1),
    };
    const policy = fc
      .constantFrom(
        { rate: 10 },
        { rate: '10/min', tiers: { vip: 20 } },
        { rate: 10, period: '5s', algorithm: 'sliding-window', subWindows: 5 },
        { rate: 10, algorithm: 'leaky-bucket', mode: 'shaper', maxDelay: '1s' },
      )
      .chain((right) => altered(right, others));
    const seen = { right: 0, wrong: 0 };
    fc.assert(
      fc.property(policy, (input) => {
        const isRight = passes(() => {
          applyPolicy('p', input, { ipv6Prefix: 64, user: undefined });
          checkPolicy('p', limitPart(input));
        });
        seen[isRight ? 'right' : 'wrong']++;
        expect(passes(() => checkDocument({ policies: { p: input } }))).toBe(isRight);
      }),
      { numRuns: 800 },
    );
    expect(Math.min(seen.right, seen.wrong)).toBeGreaterThan(40);
  });

  it('on the quota', () => {
    const cluster = altered(
      { capacity: 1000 },
      {
        capacity: fc.constantFrom(0, 10, 100),
        burstRatio: fc.constantFrom(0.9, 1, 2, 101),
        reservedRatio: fc.constantFrom(0, 0.1, 0.3),
        maxCost: fc.constantFrom(1, 5, 500, 0),
        pace: span,
        leaseTtl: span,
        syncInterval: span,
        batchThreshold: figure,
        refillThreshold: fc.constantFrom(0, 0.5, 2),
        reserveTarget: figure,
      },
    );
    const app = altered(
      { guaranteed: 5 },
      {
        guaranteed: fc.constantFrom(1, 500, 0.5),
        burst: fc.constantFrom(1, 5, 1000),
        burstDuration: span,
        priority: fc.constantFrom(0, 3, 4),
        elastic: fc.constantFrom(true, 'x'),
      },
    );
    const apps = fc.dictionary(fc.constantFrom('a', 'b', 'c.d', 'e f'), app, { maxKeys: 2 });
    const seen = { right: 0, wrong: 0 };
    fc.assert(
      fc.property(cluster, apps, (cluster, apps) => {
        const document = { cluster, apps, policies: { api: { rate: 1 } } } as ConfigDocument;
        const isRight = passes(() => checkQuota(limitsOf(document).quota!));
        seen[isRight ? 'right' : 'wrong']++;
        expect(passes(() => checkDocument(document))).toBe(isRight);
      }),
      { numRuns: 800 },
    );
    expect(Math.min(seen.right, seen.wrong)).toBeGreaterThan(40);
  });

  /** Around every bound that any option has, and of every type that JSON has. */
  const anything = fc.constantFrom<unknown>(
    ...[-1, 0, 1e-9, 0.5, 1, 1.1, 2, 2.1, 20, 100, 1000],
    ...[1e5, 1e5 + 1, 1e6, 1e6 + 1, 1e7, 1e7 + 1, 1e12, 1e12 + 1],
    ...['', '1s', '0s', '366d', 'soon', 'redis', 'auto', 'forced', 'observe', 'p', 'no-policy'],
    ...[true, false, null, [], ['a', ''], ['a.b'], {}, ['/a'], { 'x-a': 'b' }],
    ...['on', 'loop', '2ms', '30ms', '150ms', 3, 30, 150],
    ...[[100], [10, 100], [10, 10, 100], [10, 50], [0, 100], [10.5, 100], Array(21).fill(100)],
    ...[{ calls: 10 }, { calls: 0 }, { calls: 1e6 + 1 }, { calls: 5, of: 1 }],
  );

  /** A section of which up to three fields, wherever they are, hold anything. */
  const spoilt = (fields: readonly string[], maxLength = 3) =>
    fc.uniqueArray(fc.tuple(fc.constantFrom(...fields), anything), {
      ...{ minLength: 1, maxLength, selector: ([field]) => field },
    });

  const built = (changes: readonly (readonly [string, unknown])[]): Fields => {
    const section: Fields = {};
    for (const [path, value] of changes) {
      const names = path.split('/');
      const last = names.pop()!;
      let at = section;
      for (const name of names) {
        const part = at[name];
        at = (typeof part === 'object' && part !== null ? part : (at[name] = {})) as Fields;
      }
      // The parts below it may be built by the next change.
      at[last] = structuredClone(value);
    }
    return section;
  };

  /** Counts both answers: a property that sees only refusals says little. */
  const agree = (section: fc.Arbitrary<Fields>, check: Check, documentOf: DocumentOf): void => {
    const seen = { right: 0, wrong: 0 };
    fc.assert(
      fc.property(section, (input) => {
        const isRight = passes(() => check(input));
        seen[isRight ? 'right' : 'wrong']++;
        expect(passes(() => checkDocument(documentOf(input)))).toBe(isRight);
      }),
      { numRuns: 1000 },
    );
    expect(Math.min(seen.right, seen.wrong)).toBeGreaterThan(50);
  };

  const RECOVERY = [
    ...['window', 'minCalls', 'errorRate', 'slow', 'slowRate', 'probeInterval', 'steps'],
    ...['successThreshold', 'probeTimeout', 'stageMin', 'minSamples', 'stageMax', 'tolerance'],
  ].map((name) => `recovery/${name}`);
  const DEGRADATION = [
    ...['level1Ttl', 'level2Ttl', 'level1Timeout', 'slow', 'deadline', 'refreshAfter', 'recovery'],
    ...['maxEntries', 'maxBytes', 'maxReads', 'maxFallbacks', 'coreFields', 'resources', 'depth'],
    ...['resources/x', 'resources/x y', ...RECOVERY],
    ...[
      'mode',
      'level',
      'level1Ttl',
      'level2Ttl',
      'coreFields',
      'recovery',
      'depth',
      ...RECOVERY,
    ].map((name) => `resources/x/${name}`),
  ];
  const PROTECTION = [
    ...['db', 'a b', 'db/preset', 'db/deadline', 'db/rate', 'db/maxValueBytes', 'db/depth'],
    ...['db/bulkhead', 'db/breaker', 'db/slow', 'db/bulkhead/depth', 'db/breaker/depth'],
    ...['maxInFlight', 'maxQueue', 'maxWait', 'heldWarning'].map((name) => `db/bulkhead/${name}`),
    ...['threshold', 'sampleEvery', 'maxLabel'].map((name) => `db/slow/${name}`),
    ...[
      ...['window', 'minimumCalls', 'errorRate', 'slowRate', 'slowCall', 'openFor', 'probes'],
      ...['successes', 'probeLease', 'mode'],
    ].map((name) => `db/breaker/${name}`),
  ];

  const OVERLOAD = [
    ...['enabled', 'mode', 'target', 'interval', 'slice', 'maxWaiting', 'maxInFlight', 'tiers'],
    ...['exempt', 'retryAfter', 'headers', 'tick', 'score', 'depth', 'score/floor', 'score/source'],
    ...['headers/x-a', 'headers/connection', 'headers/a b', 'score/weights', 'score/from'],
    ...['cpu', 'memory', 'inFlight'].flatMap((name) => [
      `score/weights/${name}`,
      `score/from/${name}`,
    ]),
  ];

  const ALERTS = [
    ...['enabled', 'hold', 'resolveAt', 'seconds', 'minutes', 'states', 'mute', 'depth'],
    ...['window', 'baseline', 'factor', 'minRate', 'evaluations', 'newUsualAfter', 'severity'].map(
      (name) => `seconds/qpsRise/${name}`,
    ),
    ...['above', 'window', 'longWindow', 'minRequests'].map((name) => `seconds/errorRate/${name}`),
    ...['above', 'window', 'baseline', 'minRequests'].map((name) => `minutes/p99Rise/${name}`),
    ...['above', 'window', 'baseline', 'factor'].map((name) => `minutes/denialRise/${name}`),
    ...['level1', 'level4', 'window', 'minAnswers'].map((name) => `minutes/degraded/${name}`),
    ...['above', 'window', 'horizon', 'depth'].map((name) => `hours/peak/${name}`),
    ...['storeAway/after', 'relapse/times', 'relapse/after'].map((name) => `states/${name}`),
    ...['mute/peak', 'mute/moon', 'mute/peak/until', 'mute/peak/series'],
  ];

  /** A profile takes nothing away: null is no value of any option. */
  const withoutNull = (sections: fc.Arbitrary<Fields>) =>
    sections.filter((section) => !JSON.stringify(section).includes('null'));
  const degradation = spoilt(DEGRADATION).map(built);
  const protection = spoilt(PROTECTION).map(built);
  const checkDegradation: Check = (input) => checkDegradeModule(input);
  const limiter = createRateLimiter({ policies: { p: { rate: 1 } } });
  const resources = new Protection({}, { limiter });
  const checkProtection: Check = (input) => resources.prepare(input as ResourcesInput);
  afterAll(() => limiter.close());

  it('on degradation', () => {
    agree(degradation, checkDegradation, (input) => ({ degradation: input }));
  });

  it('on protection', () => {
    agree(protection, checkProtection, (input) => ({
      policies: { p: { rate: 1 } },
      protection: input,
    }));
  });

  it('on overload', () => {
    agree(spoilt(OVERLOAD, 1).map(built), checkOverload, (input) => ({ overload: input }));
  });

  it('on alerts', () => {
    agree(spoilt(ALERTS, 2).map(built), checkAlerts, (input) => ({ alerts: input }));
  });

  it('on what a profile lays over', () => {
    const calm = { slow: '500ms', recovery: { minCalls: 5 } };
    agree(
      withoutNull(degradation),
      (input) => checkDegradeModule(mergePatch(calm, input) as never),
      (input) => ({ degradation: calm, profiles: { promo: { degradation: input } } }),
    );
    const base = { db: { preset: 'database', bulkhead: { maxInFlight: 10 } } };
    agree(
      withoutNull(protection),
      (input) => checkProtection(mergePatch(base, input) as Fields),
      (input) => ({
        ...{ policies: { p: { rate: 1 } }, protection: base },
        profiles: { promo: { protection: input } },
      }),
    );
  });

  it.each([['adaptive', 'adaptive is now overload']])('that there is no %s', (section, fault) => {
    const message = `${section}: ${fault}`;
    expect(faultsOf(() => checkDocument({ [section]: {} }))).toEqual([message]);
    expect(faultsOf(() => checkDocument({ profiles: { promo: { [section]: {} } } }))).toEqual([
      `profiles.promo.${message}`,
    ]);
    expect(faultsOf(() => checkLayer({ [section]: {} }))).toEqual([message]);
  });

  it('on what editors take for a duration and a rate', () => {
    const written = fc
      .tuple(
        fc.constantFrom('', '0', '1', '2.5', '60', 'x', '-1'),
        fc.constantFrom('', ' '),
        fc.constantFrom(
          'ms',
          's',
          'sec',
          'seconds',
          'min',
          'm',
          'h',
          'hours',
          'd',
          'days',
          'mss',
          'y',
          '',
        ),
      )
      .map((parts) => parts.join(''));
    const [duration, rate] = [new RegExp(DURATION_PATTERN), new RegExp(RATE_PATTERN)];
    fc.assert(
      fc.property(written, fc.constantFrom('5/', '0.5 / ', '/', 'x/'), (text, before) => {
        // Nothing is too short for an editor.
        fc.pre(!text.startsWith('0'));
        expect(duration.test(text)).toBe(passes(() => durationMs(text, 'x')));
        expect(rate.test(before + text)).toBe(passes(() => parseRate(before + text, 'x')));
      }),
    );
  });
});

type Fields = Record<string, unknown>;
type Check = (input: Fields) => unknown;
type DocumentOf = (input: Fields) => object;

function passes(check: () => unknown): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}
