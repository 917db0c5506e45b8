import fc from 'fast-check';
import { durationMs, parseRate } from '../../lib/common/duration.js';
import { DURATION_PATTERN, RATE_PATTERN } from '../../lib/common/schema-fields.js';
import { checkDocument } from '../../lib/config/schema/check.js';
import { type ConfigDocument } from '../../lib/config/schema/document.schema.js';
import { limitsOf } from '../../lib/config/schema/limits-of.js';
import { checkPolicy } from '../../lib/limiter/policy-options.js';
import { checkQuota } from '../../lib/limiter/quota-options.js';

/** One set of rules: the schema must not say no where the limiter says yes, nor the other way round. */
describe('the limiter and the document agree', () => {
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
        const isRight = passes(() => checkPolicy('p', input));
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
function passes(check: () => unknown): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}
