import {
  BreakerOpenError,
  Degradation,
  isRateLimitError,
  RateLimiter,
  retryAfterMsOf,
} from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { OFFERED, type Offer } from './degrade-routes.js';
import { Stage } from './degrade-stage.js';
import { WIRES, type Answer, type DegradeWire } from './degrade-wires.js';

/** The module's own figures. */
const SLOW_MS = 1000;
const DEADLINE_MS = 2000;

/** Causes of a fallback; each gives the answer of one request. */
const TRIGGERS: Readonly<
  Record<string, (wire: DegradeWire, stage: Stage, offer: Offer) => Promise<Answer>>
> = {
  limited(wire, stage, offer) {
    stage.isLimited = true;
    return wire.ask(offer);
  },
  failed(wire, stage, offer) {
    stage.throws(new Error('down'));
    return wire.ask(offer);
  },
  open(wire, stage, offer) {
    stage.throws(new BreakerOpenError('shop', 1000));
    return wire.ask(offer);
  },
  async slow(wire, stage, offer) {
    stage.hangs();
    const entered = stage.entered();
    const answer = wire.ask(offer);
    await entered;
    stage.clock.advance(SLOW_MS);
    // Only where there is nothing to give before.
    if (offer === 'words' || offer === 'nothing') stage.clock.advance(DEADLINE_MS - SLOW_MS);
    return answer;
  },
  forced(wire, _stage, offer) {
    wire.app.get(Degradation).force(`Products.${offer}`);
    return wire.ask(offer);
  },
};

const LEVEL_OF: Readonly<Record<Offer, number | undefined>> = {
  level1: 1,
  level2: 2,
  level3: 3,
  level4: 4,
  words: 4,
  all: 1,
  nothing: undefined,
};

const NAME_OF: Readonly<Record<Offer, (reason: string) => string | undefined>> = {
  level1: () => 'kettle',
  level2: () => 'kettle',
  level3: (reason) => `kettle, ${reason}`,
  level4: () => 'something',
  words: () => undefined,
  all: () => 'kettle',
  nothing: () => undefined,
};

/** The answers without a substitute: a message, or the answer as it would be without `@Degrade`. */
const FAILED: Readonly<Record<string, Record<'words' | 'nothing', Record<string, unknown>>>> = {
  http: {
    words: { limited: 429, failed: 503, open: 503, slow: 503, forced: 503 },
    nothing: { limited: 429, failed: 500, open: 503, slow: 503, forced: 503 },
  },
  grpc: {
    words: { limited: 8, failed: 14, open: 14, slow: 14, forced: 14 },
    nothing: { limited: 8, failed: 2, open: 14, slow: 14, forced: 14 },
  },
  tcp: {
    words: { limited: 429, failed: 503, open: 503, slow: 503, forced: 503 },
    nothing: { limited: 429, failed: 'Internal server error', open: 503, slow: 503, forced: 503 },
  },
};

const ROWS = Object.keys(TRIGGERS).flatMap((trigger) =>
  OFFERED.map((offer) => [trigger, offer] as const),
);

describe.each(Object.keys(WIRES))('@Degrade over %s', (name) => {
  let stage: Stage;
  let wire: DegradeWire;

  beforeAll(async () => {
    stage = new Stage(new ManualClock());
    wire = await WIRES[name]!(stage);
    await wire.app.get(RateLimiter).acquire({ policy: 'closed', key: 'global' });
  });

  afterAll(() => wire.close());

  beforeEach(() => {
    stage.works();
    // Nothing of what an earlier test has stored is left.
    stage.clock.advance(10 * 60_000);
  });

  afterEach(() => {
    stage.finish();
    for (const offer of OFFERED) {
      wire.app.get(Degradation).disable(`Products.${offer}`);
      wire.app.get(Degradation).resume(`Products.${offer}`);
    }
  });

  it.each(ROWS)('%s, %s: the best answer still possible', async (trigger, offer) => {
    const normal = await wire.ask(offer);
    expect(normal).toMatchObject({ name: 'kettle', mark: undefined, failed: undefined });
    const calls = stage.calls;

    const answer = await TRIGGERS[trigger]!(wire, stage, offer);

    const level = LEVEL_OF[offer];
    const isCached = level === 1 || level === 2;
    const transport = name === 'express' || name === 'fastify' ? 'http' : name;
    const failed =
      offer === 'words' || offer === 'nothing' ? FAILED[transport]![offer][trigger] : undefined;
    // The body of protection is not that of `@Degrade`.
    const isDegraded = (failed === 503 || failed === 14) && trigger !== 'open';
    const isTold = level !== undefined || isDegraded;
    expect({ ...answer, call: isCached ? answer.call : undefined }).toEqual({
      name: NAME_OF[offer](trigger),
      call: isCached ? normal.call : undefined,
      mark: isTold ? `level=${level ?? 4}; reason=${trigger}` : undefined,
      failed,
    });
    expect(stage.calls - calls).toBe(trigger === 'limited' || trigger === 'forced' ? 0 : 1);
  });

  it('words to a caller over its limit say when to come back, and only those', async () => {
    stage.isLimited = true;
    const closed = { policy: 'closed', key: 'global' };
    const { retryAfterMs } = await wire.app.get(RateLimiter).peek(closed);
    const limited = await wire.errorOf('words');
    expect(isRateLimitError(limited)).toBe(true);
    expect(retryAfterMsOf(limited)).toBe(retryAfterMs);

    stage.works();
    stage.throws(new Error('down'));
    const failed = await wire.errorOf('words');
    expect(isRateLimitError(failed)).toBe(false);
    expect(retryAfterMsOf(failed)).toBeUndefined();
  });

  it('answers no other question than the one that was asked', async () => {
    const { call } = await wire.ask('level2', 'a');
    stage.throws(new Error('down'));
    expect((await wire.ask('level2', 'b')).failed).toBeDefined();
    expect(await wire.ask('level2', 'a')).toMatchObject({ call, failed: undefined });
  });

  it('leaves errors alone that are the callers’ own', async () => {
    await wire.ask('all');
    stage.throws(wire.notFound.error);
    const { failed, mark } = await wire.ask('all');
    expect([failed, mark]).toEqual([wire.notFound.failed, undefined]);
  });

  it('answers those who come together with what one of them was given', async () => {
    stage.throws(new Error('down'));
    const answers = await Promise.all(Array.from({ length: 10 }, () => wire.ask('level3')));
    expect(new Set(answers.map((answer) => answer.name))).toEqual(new Set(['kettle, failed']));
  });
});
