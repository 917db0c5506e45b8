import {
  createRateLimiter,
  type Decision,
  type PolicyInput,
  type RateLimiter,
  type StoreSwitch,
} from 'nestjs-weir';
import {
  startPrimaryWithReplica,
  startProxy,
  startRedis,
  stopAll,
  until,
  withRedis,
  type RedisProcess,
} from '../support/index.js';
import { errorWith } from '../support/errors.js';
import { now, together } from '../support/limiters.js';
import { ManualClock, settle } from '../support/manual-clock.js';

const DEADLINE_MS = 20;
const DAY_MS = 86_400_000;

/** A limiter on a Redis that will fail, with the time and the switches in our hands. */
class Patient {
  readonly clock = new ManualClock();
  readonly limiter: RateLimiter;
  readonly switches: StoreSwitch[] = [];

  constructor(url: string, policy: PolicyInput, nodeId?: string) {
    this.limiter = createRateLimiter({
      policies: { p: policy },
      store: { type: 'redis', url },
      clock: this.clock,
      nodeId,
    });
    this.limiter.on('store', (event) => this.switches.push(event));
  }

  get states(): string[] {
    return this.switches.map(({ state }) => state);
  }

  ask(key = 'k', cost = 1): Decision | Promise<Decision> {
    return this.limiter.tryAcquire({ policy: 'p', key, cost });
  }

  /** Lets time pass until the store answers again; slowly, so that real replies are in time. */
  async recover(): Promise<void> {
    const answers = async (): Promise<boolean> => {
      await this.clock.advanceAsync(10);
      return this.states.at(-1) === 'up';
    };
    await until(answers, { intervalMs: 2, timeoutMs: 20_000, what: 'the store to answer again' });
  }
}

describe('the limiter when Redis fails', () => {
  let server: RedisProcess;
  const patients: Patient[] = [];

  function patient(url: string, policy: PolicyInput, nodeId?: string): Patient {
    const made = new Patient(url, policy, nodeId);
    patients.push(made);
    return made;
  }

  beforeEach(async () => {
    server = await startRedis();
  });

  afterEach(async () => {
    await Promise.all(patients.splice(0).map(({ limiter }) => limiter.close()));
    await stopAll();
  });

  it('that was never there: decides at the deadline, then at once, and says so once', async () => {
    await server.stop();
    const { limiter, clock, switches, ask } = bound(patient(server.url, { rate: 5 }));
    const decisions: Decision[] = [];
    for (let i = 0; i < 3; i++) void Promise.resolve(ask()).then((made) => decisions.push(made));
    await clock.advanceAsync(DEADLINE_MS - 1);
    expect(decisions).toHaveLength(0);
    await clock.advanceAsync(1);
    expect(decisions.map(({ allowed, source }) => ({ allowed, source }))).toEqual(
      Array.from({ length: 3 }, () => ({ allowed: true, source: 'fallback' })),
    );
    expect(now(ask())).toMatchObject({ source: 'fallback' });
    expect(switches).toEqual([expect.objectContaining({ state: 'down' })]);
    const failed = expect(limiter.ready(1000)).rejects.toMatchObject({ code: 'STORE_TIMEOUT' });
    clock.advance(1000);
    await failed;
  });

  it.each<[string, PolicyInput, 'refused' | 'owed']>([
    ['a bucket gets it back', { rate: 9, period: '1d', failureMode: 'closed' }, 'refused'],
    [
      'a window gets it back',
      { algorithm: 'sliding-window', rate: '9/h', failureMode: 'closed' },
      'refused',
    ],
    ['what it denied, and passed by share, is owed', { rate: 9, period: '1d' }, 'owed'],
  ])(
    'and decides otherwise than the process did, which held it to be away: %s',
    async (_what, policy, before) => {
      const proxy = await startProxy({ targetPort: server.port });
      const subject = patient(proxy.url, policy);
      const { clock, limiter } = subject;
      await limiter.ready();
      await subject.ask(before === 'owed' ? 'k' : 'other', 9);
      proxy.holdReplies();
      for (let i = 0; i < 3; i++) {
        const decided = subject.ask('k', 2);
        await settle();
        await clock.advanceAsync(DEADLINE_MS);
        expect(await decided).toMatchObject({ source: 'fallback' });
      }
      expect(subject.states).toEqual(['down']);
      proxy.releaseReplies();
      await subject.recover();
      await until(async () => {
        const { remaining, retryAfterMs } = await limiter.peek({ policy: 'p', key: 'k' });
        // Three times two, and one that is asked for.
        return before === 'owed' ? Math.ceil((retryAfterMs * 9) / DAY_MS) === 7 : remaining === 9;
      });
    },
  );

  it('answers no decision later than its deadline, to the millisecond', async () => {
    const proxy = await startProxy({ targetPort: server.port });
    const subject = patient(proxy.url, { rate: 1000 });
    await subject.limiter.ready();
    proxy.holdReplies();
    const { clock } = subject;
    const startMs = clock.now() / 1000;
    const answers: { askedMs: number; afterMs: number; source: string; states: string[] }[] = [];
    for (let i = 0; i < 30; i++) {
      const askedMs = clock.now() / 1000 - startMs;
      void Promise.resolve(subject.ask(`key${i}`)).then(({ source }) => {
        const afterMs = clock.now() / 1000 - startMs - askedMs;
        answers.push({ askedMs, afterMs, source, states: subject.states });
      });
      await clock.advanceAsync(3);
    }
    await clock.advanceAsync(DEADLINE_MS);
    expect(clock.now() / 1000 - startMs).toBe(90 + DEADLINE_MS);
    // Nobody is left without an answer, and nobody has it late.
    expect(answers).toHaveLength(30);
    expect(answers.every(({ source }) => source === 'fallback')).toBe(true);
    // Requests that were on their way together are one failure: those of 0, 21 and 42 ms count, at 20, 41 and
    // 62 ms. The third opens the breaker; later requests do not wait.
    for (const { askedMs, afterMs, states } of answers) {
      expect({ askedMs, afterMs }).toEqual({ askedMs, afterMs: askedMs > 62 ? 0 : DEADLINE_MS });
      expect(states).toEqual(askedMs + afterMs >= 62 ? ['down'] : []);
    }
    expect(subject.states).toEqual(['down']);
  });

  it('takes a hiccup for one failure, however many calls were caught in it', async () => {
    const proxy = await startProxy({ targetPort: server.port });
    const subject = patient(proxy.url, { rate: 1000, failureMode: 'open' });
    const { clock } = subject;
    await subject.limiter.ready();
    for (let hiccup = 0; hiccup < 3; hiccup++) {
      proxy.holdReplies();
      const caught: (Decision | Promise<Decision>)[] = [];
      for (let turn = 0; turn < 10; turn++) {
        caught.push(subject.ask(`key${turn}`));
        await clock.advanceAsync(1);
      }
      await clock.advanceAsync(DEADLINE_MS);
      for (const { source } of await together(caught)) expect(source).toBe('fallback');
      proxy.releaseReplies();
      // An answer in between: the failures are not in a row.
      if (hiccup === 1) await until(async () => (await subject.ask('fine')).source === 'store');
    }
    expect(subject.states).toEqual([]);
    expect(await subject.ask('fine')).toMatchObject({ source: 'store' });
  });

  it('gives tokens back that a late answer took for a request already refused', async () => {
    const proxy = await startProxy({ targetPort: server.port });
    const subject = patient(proxy.url, { rate: 10, period: '1d', failureMode: 'closed' });
    const { clock, limiter } = subject;
    await limiter.ready();
    await subject.ask();
    proxy.holdReplies();
    const refused = subject.ask();
    await settle();
    await clock.advanceAsync(DEADLINE_MS);
    expect(await refused).toMatchObject({ allowed: false, source: 'fallback' });
    proxy.releaseReplies();
    await until(async () => (await limiter.peek({ policy: 'p', key: 'k' })).remaining === 9);
    expect(subject.states).toEqual([]);
  });

  it('is owed what passed by share and a late answer denies', async () => {
    const proxy = await startProxy({ targetPort: server.port });
    const subject = patient(proxy.url, { rate: 10, period: '1d' });
    const { clock, limiter } = subject;
    const tokenMs = 86_400_000 / 10;
    await limiter.ready();
    await subject.ask('k', 10);
    proxy.holdReplies();
    const passed = subject.ask('k', 10);
    await settle();
    await clock.advanceAsync(DEADLINE_MS);
    expect(await passed).toMatchObject({ allowed: true, source: 'fallback' });
    proxy.releaseReplies();
    const denial = async (): Promise<Decision> => limiter.peek({ policy: 'p', key: 'k' });
    await until(async () => (await denial()).retryAfterMs > 10 * tokenMs);
    expect(await denial()).toMatchObject({ allowed: false, remaining: 0, source: 'store' });
  });

  it('that is killed and comes back empty: each switch is told once, and nothing is lost', async () => {
    const subject = patient(server.url, { rate: 100, period: '1d' });
    await subject.limiter.ready();
    expect(await subject.ask()).toMatchObject({ source: 'store' });
    await server.kill();
    const answers = together(Array.from({ length: 20 }, () => subject.ask()));
    await subject.clock.advanceAsync(DEADLINE_MS);
    for (const answer of await answers) expect(answer.source).toBe('fallback');
    await server.restart();
    await subject.recover();
    expect(subject.states).toEqual(['down', 'up']);
    expect(await subject.ask()).toMatchObject({ source: 'store', remaining: 99 });
  });

  it('that is stopped in its tracks: opens after three turns, and probes one at a time', async () => {
    const proxy = await startProxy({ targetPort: server.port });
    const subject = patient(proxy.url, { rate: 100 });
    await subject.limiter.ready();
    proxy.holdReplies();
    for (let turn = 0; turn < 3; turn++) {
      const answer = subject.ask();
      await subject.clock.advanceAsync(DEADLINE_MS);
      expect(await answer).toMatchObject({ source: 'fallback' });
    }
    expect(subject.states).toEqual(['down']);
    const before = proxy.stats.bytesToServer;
    for (let i = 0; i < 100; i++) expect(now(subject.ask()).source).toBe('fallback');
    expect(proxy.stats.bytesToServer).toBe(before);
    // 10 s of silence: the probes back off from 0.1 s to 2 s, so there are a handful of them.
    const perProbe = 300;
    for (let ms = 0; ms < 10_000; ms += 100) await subject.clock.advanceAsync(100);
    expect(proxy.stats.bytesToServer - before).toBeLessThan(10 * perProbe);
    expect(proxy.stats.bytesToServer - before).toBeGreaterThan(0);
    proxy.releaseReplies();
    await subject.recover();
    expect(await subject.ask()).toMatchObject({ source: 'store' });
    expect(subject.states).toEqual(['down', 'up']);
  });

  it('that loses a connection with a call on it: the call is not sent again', async () => {
    const proxy = await startProxy({ targetPort: server.port });
    const subject = patient(proxy.url, { rate: 10, period: '1d', failureMode: 'open' });
    await subject.limiter.ready();
    proxy.cutAtNextReply();
    expect(await subject.ask()).toMatchObject({ allowed: true, source: 'fallback' });
    await subject.recover();
    expect(await subject.limiter.peek({ policy: 'p', key: 'k' })).toMatchObject({ remaining: 9 });
  });

  it('that is read-only: follows the failure mode until it can write', async () => {
    const { primary, replica, promote } = await startPrimaryWithReplica();
    const subject = patient(replica.url, { rate: 100 });
    await subject.limiter.ready();
    for (let turn = 0; turn < 5; turn++) {
      const answer = subject.ask();
      await settle();
      await subject.clock.advanceAsync(DEADLINE_MS);
      expect(await answer).toMatchObject({ allowed: true, source: 'fallback' });
    }
    expect(subject.states).toEqual(['down']);
    await primary.kill();
    await promote();
    await subject.recover();
    expect(await subject.ask()).toMatchObject({ source: 'store' });
  });

  it('that is out of memory: follows the failure mode until there is room', async () => {
    const subject = patient(server.url, { rate: 100 });
    await subject.limiter.ready();
    await withRedis(server.port, (client) => client.config('SET', 'maxmemory', '1'));
    for (let turn = 0; turn < 3; turn++) {
      const answer = subject.ask();
      await until(() => Promise.resolve(answer).then(() => true));
      expect(await answer).toMatchObject({ allowed: true, source: 'fallback' });
    }
    expect(subject.switches).toEqual([
      {
        state: 'down',
        reason: errorWith({ message: expect.stringContaining('OOM') as string }),
      },
    ]);
    await withRedis(server.port, (client) => client.config('SET', 'maxmemory', '0'));
    await subject.recover();
    expect(await subject.ask()).toMatchObject({ source: 'store' });
  });

  describe('by failure mode', () => {
    it('local: every node decides by its share of the rate and burst', async () => {
      const policy: PolicyInput = { rate: 10, burst: 10, period: '1h' };
      const [a, b] = [patient(server.url, policy, 'a'), patient(server.url, policy, 'b')];
      for (const node of [a, b, a]) {
        await node.limiter.ready();
        // A heartbeat goes along at most once a second, and tells how many there are.
        await node.clock.advanceAsync(1000);
        await node.ask('warm-up');
        await settle();
      }
      await withRedis(server.port, async (client) => {
        await until(async () => (await client.zcard('weir:{nodes}')) === 2);
      });
      await until(() => settle().then(() => true));
      await server.kill();
      await drain(a);
      let allowed = 0;
      for (let i = 0; i < 20; i++) if (now(a.ask('fresh')).allowed) allowed++;
      expect(allowed).toBe(5);
      await a.clock.advanceAsync(3_600_000 / 5);
      expect(now(a.ask('fresh')).allowed).toBe(true);
      expect(now(a.ask('fresh')).allowed).toBe(false);
    });

    it('open: lets everything pass', async () => {
      await server.kill();
      const subject = patient(server.url, { rate: 1, failureMode: 'open' });
      await drain(subject);
      for (let i = 0; i < 10; i++) expect(now(subject.ask()).allowed).toBe(true);
    });

    it('closed: lets nothing pass, and says when to come back', async () => {
      await server.kill();
      const subject = patient(server.url, { rate: 1, failureMode: 'closed' });
      await drain(subject);
      expect(now(subject.ask())).toMatchObject({ allowed: false, retryAfterMs: 1000 });
    });

    it.each(['local', 'open', 'closed'] as const)(
      '%s: peek says what a take would get',
      async (failureMode) => {
        await server.kill();
        const subject = patient(server.url, { rate: '2/h', failureMode });
        await drain(subject);
        for (let asked = 0; asked < 4; asked++) {
          const peeked = await subject.limiter.peek({ policy: 'p', key: 'k' });
          const { allowed, limit, retryAfterMs, source } = now(subject.ask());
          expect(peeked).toMatchObject({ allowed, limit, retryAfterMs, source });
        }
      },
    );
  });
});

/** Uses up the decisions that still wait for an answer. */
async function drain(subject: Patient): Promise<void> {
  await until(async () => {
    const answer = subject.ask('drain');
    await subject.clock.advanceAsync(DEADLINE_MS);
    await answer;
    return !(answer instanceof Promise);
  });
}

function bound(subject: Patient): Patient & { ask: Patient['ask'] } {
  return Object.assign(subject, { ask: subject.ask.bind(subject) });
}

describe('closing on a Redis that has gone deaf', () => {
  afterEach(stopAll);

  it('takes one deadline for all that is left to say, not one for each', async () => {
    const server = await startRedis();
    const proxy = await startProxy({ targetPort: server.port });
    const clock = new ManualClock();
    const limiter = createRateLimiter({
      policies: { p: { rate: 100 } },
      quota: {
        cluster: { capacity: 1000 },
        apps: { shop: { guaranteed: 500, burst: 900 } },
        maxCost: 100,
      },
      store: { type: 'redis', url: proxy.url, decisionTimeout: '50ms' },
      clock,
    });
    await limiter.ready();
    await limiter.tryAcquire({ app: 'shop' });
    await limiter.tryAcquire({ policy: 'p', key: 'k' });
    proxy.goDead();
    // A call of either kind is on its way, and the quota has tokens to give back after that.
    const asked = [
      limiter.tryAcquire({ app: 'shop', cost: 100 }),
      limiter.tryAcquire({ policy: 'p', key: 'k' }),
    ];
    // Waits by this clock never end, so only the one deadline of the whole can end them.
    await limiter.close();
    clock.advance(50);
    for (const one of asked) expect(await one).toMatchObject({ source: 'fallback' });
  });
});
