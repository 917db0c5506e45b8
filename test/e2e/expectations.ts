import { type Caller } from './app/caller.js';
import { type RouteName } from './app/routes.js';
import { type Call } from './clients.js';
import { passed, type Outcome } from './outcome.js';

/** A caller that no application has seen before. */
export class Visitor {
  private static count = 0;
  private readonly key = `visitor-${Visitor.count++}`;

  constructor(private readonly send: Call) {}

  call(route: RouteName, more: Partial<Caller> = {}): Promise<Outcome> {
    return this.send(route, { key: this.key, ...more });
  }

  /** The outcomes of these calls, one after the other. */
  async calls(routes: readonly RouteName[], more: Partial<Caller> = {}): Promise<Outcome[]> {
    const outcomes: Outcome[] = [];
    for (const route of routes) outcomes.push(await this.call(route, more));
    return outcomes;
  }

  /** A name that no other caller has. */
  named(name: string): Partial<Caller> {
    return { name: `${name} of ${this.key}` };
  }

  another(): Visitor {
    return new Visitor(this.send);
  }

  /** Moves the clock of the application. */
  async advance(ms: number): Promise<void> {
    expect(await this.call('advance', { advanceMs: ms })).toEqual(OK);
  }

  /** How often the authentication of the application ran so far. */
  async asked(): Promise<number> {
    return Number((await this.call('asked')).text);
  }
}

type Expectation = (visitor: Visitor) => Promise<void>;

const OK = passed('ok');
const UNKNOWN: Outcome = { allowed: false, refusal: 'Forbidden resource' };

const denied = (policy: string | undefined, retryAfterMs: number): Outcome => ({
  allowed: false,
  policy,
  retryAfterMs,
});

/** The expectations that hold on every transport. */
export const EXPECTATIONS: Readonly<Record<string, Expectation>> = {
  'two calls pass, and the third is told when to come back and whose rule it was': async (one) => {
    const outcomes = await one.calls(['two', 'two', 'two']);
    expect(outcomes).toEqual([OK, OK, denied('two', 30_000)]);
  },

  'another caller is not concerned': async (one) => {
    await one.calls(['two', 'two', 'two']);
    expect(await one.another().call('two')).toEqual(OK);
  },

  'after the time that was told it passes again, and not before': async (one) => {
    const last = (await one.calls(['two', 'two', 'two'])).at(-1);
    await one.advance(last!.retryAfterMs! - 1);
    expect(await one.call('two')).toEqual(denied('two', 1));
    await one.advance(1);
    expect(await one.calls(['two', 'two'])).toEqual([OK, denied('two', 30_000)]);
  },

  'a call that costs two takes two': async (one) => {
    const outcomes = await one.calls(['costly', 'costly', 'cheap', 'cheap']);
    expect(outcomes).toEqual([OK, denied('three', 20_000), OK, denied('three', 20_000)]);
  },

  'what is skipped is never denied, and takes nothing': async (one) => {
    const more = { isCounted: true };
    expect(await one.calls(Array<RouteName>(5).fill('skipped'), more)).toEqual(Array(5).fill(OK));
    expect(await one.calls(['wide', 'wide', 'wide'])).toEqual([OK, OK, OK]);
  },

  'policies of class and method are all or nothing': async (one) => {
    const outcomes = await one.calls(['stacked', 'stacked', 'stacked']);
    expect(outcomes).toEqual([OK, denied('narrow', 60_000), denied('narrow', 60_000)]);
    const wide = await one.calls(['wide', 'wide', 'wide']);
    expect(wide).toEqual([OK, OK, denied('wide', 20_000)]);
  },

  'a call that several guards see is charged once': async (one) => {
    const outcomes = await one.calls(['counted', 'counted', 'counted'], { isCounted: true });
    expect(outcomes).toEqual([OK, OK, denied('everywhere', 30_000)]);
  },

  'what applies to all holds where nothing is said': async (one) => {
    const outcomes = await one.calls(['plain', 'plain', 'plain'], { isCounted: true });
    expect(outcomes).toEqual([OK, OK, denied('everywhere', 30_000)]);
  },

  'before authentication everybody is charged, and the denied are not looked at': async (one) => {
    const before = await one.asked();
    expect(await one.calls(['limitFirst', 'limitFirst'])).toEqual([UNKNOWN, UNKNOWN]);
    expect(await one.call('limitFirst', { name: 'ann' })).toEqual(denied('two', 30_000));
    expect(await one.asked()).toBe(before + 2);
  },

  'after authentication users are charged by name, and whoever is refused is not': async (one) => {
    const [ann, bob] = [one.named('ann'), one.named('bob')];
    const known = await one.calls(['authFirst', 'authFirst', 'authFirst'], ann);
    expect(known).toEqual([OK, OK, denied('per-user', 30_000)]);
    expect(await one.call('authFirst', bob)).toEqual(OK);
    const stranger = one.another();
    const outcomes = await stranger.calls(['authFirst', 'authFirst', 'authFirst']);
    expect(outcomes).toEqual([UNKNOWN, UNKNOWN, UNKNOWN]);
    const unnamed = await stranger.calls(['noAuth', 'noAuth', 'noAuth']);
    expect(unnamed).toEqual([OK, OK, denied('per-user', 30_000)]);
  },

  'the guard of a class leaves users to the guard of the method': async (one) => {
    const ann = one.named('ann');
    const known = await one.calls(['classAuth', 'classAuth', 'classAuth'], ann);
    expect(known).toEqual([OK, OK, denied('per-user', 30_000)]);
    expect(await one.another().call('classAuth', one.named('bob'))).toEqual(OK);
  },

  'skipIf leaves out whom it names': async (one) => {
    expect(await one.calls(['members', 'members'])).toEqual([OK, denied('members', 60_000)]);
    expect(await one.calls(['members', 'members'], { isVip: true })).toEqual([OK, OK]);
  },

  'the quota is one for all callers of an app, and no other': async (one) => {
    const small = { app: 'small' };
    await one.advance(60_000);
    expect(await one.calls(['quota', 'quota'], small)).toEqual([OK, OK]);
    const late = await one.another().call('quota', small);
    // The name of the app is none of a caller's business.
    expect(late).toEqual(denied(undefined, expect.any(Number) as number));
    expect(await one.call('quota')).toEqual(OK);
    await one.advance(late.retryAfterMs!);
    expect(await one.call('quota', small)).toEqual(OK);
  },

  'who is turned away by protection is told why, and when to come back': async (one) => {
    const told = { allowed: false, unavailable: 'BREAKER_OPEN', retryAfterMs: 7000 };
    expect(await one.calls(['turnedAway', 'turnedAway'])).toEqual([told, told]);
  },

  'who is refused by the line is told when to come back, and has taken no token': async (one) => {
    const helper = { isHelper: true };
    expect(await one.call('crowd', helper)).toEqual(OK);
    const refused = await one.calls(['two', 'two', 'two']);
    expect(await one.call('relieve', helper)).toEqual(OK);
    const told = {
      allowed: false,
      unavailable: 'OVERLOADED',
      retryAfterMs: expect.any(Number) as number,
    };
    expect(refused).toEqual([told, told, told]);
    for (const { retryAfterMs } of refused) {
      expect(retryAfterMs).toBeGreaterThanOrEqual(1000);
      expect(retryAfterMs).toBeLessThanOrEqual(2000);
    }
    expect(await one.calls(['two', 'two', 'two'])).toEqual([OK, OK, denied('two', 30_000)]);
  },

  'a shadow denies nobody': async (one) => {
    const routes = Array<RouteName>(4).fill('watched');
    expect(await one.calls(routes)).toEqual([OK, OK, OK, OK]);
  },
};
