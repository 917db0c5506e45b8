import { join } from 'node:path';
import { Controller } from '@nestjs/common';
import { GrpcStreamMethod, Transport } from '@nestjs/microservices';
import { createRateLimiter, type Decision, type RateLimiter } from 'nestjs-weir';
import {
  LimitedStreamException,
  limitStream,
  RefusedStreamException,
  type PausableCall,
} from 'nestjs-weir/grpc';
import {
  catchError,
  count,
  from,
  lastValueFrom,
  map,
  of,
  Subject,
  tap,
  toArray,
  type Observable,
} from 'rxjs';
import { TestScheduler } from 'rxjs/testing';
import { root } from '../setup/ensure-built.js';
import { freePort } from '../support/free-port.js';
import { ManualClock } from '../support/manual-clock.js';
import { GrpcClients, type GrpcMessage } from '../support/nest/grpc-clients.js';
import { startService } from '../support/nest/message-app.js';

const PASSED: Decision = {
  ...{ allowed: true, remaining: 1, limit: 2, delayMs: 0, retryAfterMs: 0, resetMs: 0 },
  ...{ timestampMs: 0, policy: 'p', tier: 'policy', source: 'local' },
};
const ASKED = { policy: 'p', key: 'k' };

describe('limitStream', () => {
  let limiter: RateLimiter;
  beforeEach(() => {
    limiter = createRateLimiter({ clock: new ManualClock(), policies: { p: { rate: 2 } } });
  });
  afterEach(() => limiter.close());

  it('passes messages on at once where the limiter answers at once', () => {
    const source = new Subject<number>();
    const seen: number[] = [];
    source.pipe(limitStream(limiter, ASKED)).subscribe((message) => seen.push(message));
    source.next(1);
    expect(seen).toEqual([1]);
  });

  it('ends the stream after the last message that may pass', async () => {
    const ended = from([1, 2, 3, 4]).pipe(
      limitStream(limiter, ASKED),
      catchError((error: unknown) => of(error)),
      toArray(),
    );
    const [first, second, error, ...more] = await lastValueFrom(ended);
    expect([first, second, more]).toEqual([1, 2, []]);
    expect(error).toBeInstanceOf(LimitedStreamException);
    const { decision } = error as LimitedStreamException;
    expect(decision).toMatchObject({ allowed: false, policy: 'p', retryAfterMs: 500 });
    expect((error as LimitedStreamException).getError()).toMatchObject({ code: 8 });
  });

  it('tells which messages it leaves out', async () => {
    const dropped: number[] = [];
    const onDrop = (message: number): void => void dropped.push(message);
    const passed = from([1, 2, 3, 4]).pipe(
      limitStream(limiter, ASKED, { onLimit: 'drop', onDrop }),
      toArray(),
    );
    expect([await lastValueFrom(passed), dropped]).toEqual([
      [1, 2],
      [3, 4],
    ]);
  });

  describe.each([
    ['at once', (limiter: RateLimiter) => limiter],
    [
      'later',
      (limiter: RateLimiter): Pick<RateLimiter, 'tryAcquire'> => ({
        tryAcquire: async (what) => limiter.tryAcquire(what),
      }),
    ],
  ])('refuses a message that cannot be, which is found out %s', (_when, asked) => {
    const question = (cost: number) => ({ ...ASKED, cost });

    it.each([3, -1, NaN, 1.5, '2' as never])(
      'with a cost of %p: the stream ends with status 3',
      async (cost) => {
        const ended = from([1, cost, 1]).pipe(
          limitStream(asked(limiter), question),
          catchError((error: unknown) => of(error)),
          toArray(),
        );
        const [first, error, ...more] = await lastValueFrom(ended);
        expect([first, more]).toEqual([1, []]);
        expect(error).toBeInstanceOf(RefusedStreamException);
        const { body } = error as RefusedStreamException;
        expect(body).toMatchObject({ statusCode: 413, code: 'COST_OUT_OF_RANGE' });
        expect((error as RefusedStreamException).getError()).toMatchObject({ code: 3 });
      },
    );

    it('or the message is left out, and the stream goes on', async () => {
      const dropped: [number, Decision][] = [];
      const onDrop = (message: number, decision: Decision): void =>
        void dropped.push([message, decision]);
      const passed = from([1, 99, -1, NaN, 1]).pipe(
        limitStream(asked(limiter), question, { onLimit: 'drop', onDrop }),
        toArray(),
      );
      expect(await lastValueFrom(passed)).toEqual([1, 1]);
      expect(dropped.map(([message]) => message)).toEqual([99, -1, NaN]);
      for (const [, decision] of dropped) {
        expect(decision).toMatchObject({ allowed: false, retryAfterMs: Infinity });
      }
    });

    it('or that has no key', async () => {
      const messages = from(['a', '', undefined as never, 'b']);
      const byKey = (key: string) => ({ policy: 'p', key });
      const passed = messages.pipe(
        limitStream(asked(limiter), byKey, { onLimit: 'drop' }),
        toArray(),
      );
      expect(await lastValueFrom(passed)).toEqual(['a', 'b']);
    });

    it.each<[string, (message: number) => never]>([
      ['throws', () => (undefined as never as { id: never }).id],
      ['is a promise', () => Promise.reject(new Error('late')) as never],
    ])('or whose charge %s', async (_, charge) => {
      const rejections: unknown[] = [];
      const listen = (error: unknown): void => void rejections.push(error);
      process.on('unhandledRejection', listen);
      const byMessage = (message: number) => (message === 2 ? charge(message) : question(1));
      const stream = (onLimit: 'end' | 'drop') =>
        from([1, 2, 1]).pipe(
          limitStream(asked(limiter), byMessage, { onLimit }),
          catchError((error: unknown) => of((error as RefusedStreamException).body.code)),
          toArray(),
        );
      expect(await lastValueFrom(stream('drop'))).toEqual([1, 1]);
      await limiter.reset({ policy: 'p', key: 'k' });
      expect(await lastValueFrom(stream('end'))).toEqual([1, 'UNKNOWN_LIMIT']);
      process.off('unhandledRejection', listen);
      expect(rejections).toEqual([]);
    });

    it('and nothing else: mistakes of the application stay errors', async () => {
      const unknown = from([1]).pipe(
        limitStream(asked(limiter), () => ({ policy: 'nobody', key: 'k' }), { onLimit: 'drop' }),
      );
      await expect(lastValueFrom(unknown)).rejects.toThrow('nobody');
      const always = from([1]).pipe(
        limitStream(asked(limiter), { ...ASKED, cost: 99 }, { onLimit: 'drop' }),
      );
      await expect(lastValueFrom(always)).rejects.toThrow('cost');
    });
  });

  it('keeps the order where the store is asked for some messages and not for others', async () => {
    const byStore = { tryAcquire: () => Promise.resolve(PASSED) };
    const question = (message: number) => (message % 2 === 0 ? ASKED : undefined);
    const passed = from([0, 1, 2, 3, 4]).pipe(limitStream(byStore, question), toArray());
    expect(await lastValueFrom(passed)).toEqual([0, 1, 2, 3, 4]);
  });

  it('holds back what a shaper delays', () => {
    const delays = [0, 3, 2];
    const shaper = { tryAcquire: () => ({ ...PASSED, delayMs: delays.shift()! }) };
    const scheduler = new TestScheduler((seen, expected) => expect(seen).toEqual(expected));
    scheduler.run(({ cold, expectObservable }) => {
      const source = cold('ab----c|');
      expectObservable(source.pipe(limitStream(shaper, ASKED))).toBe('a---b---(c|)');
    });
  });

  it('keeps no more messages waiting than it may, and ends or drops beyond', () => {
    const slow = { tryAcquire: () => ({ ...PASSED, delayMs: 60_000 }) };
    const source = new Subject<number>();
    let error: unknown;
    source
      .pipe(limitStream(slow, ASKED, { maxWaiting: 3 }))
      .subscribe({ error: (reason: unknown) => (error = reason) });
    for (let i = 0; i < 3; i++) source.next(i);
    expect(error).toBeUndefined();
    source.next(3);
    expect(error).toBeInstanceOf(LimitedStreamException);
    const dropped: number[] = [];
    const onDrop = (message: number): void => void dropped.push(message);
    const other = new Subject<number>();
    const options = { maxWaiting: 3, onLimit: 'drop' as const, onDrop };
    const subscription = other.pipe(limitStream(slow, ASKED, options)).subscribe();
    for (let i = 0; i < 20_000; i++) other.next(i);
    expect(dropped).toHaveLength(19_997);
    subscription.unsubscribe();
  });

  it('keeps no more bytes waiting than some large messages have, where nobody can be paused', () => {
    const never = { tryAcquire: () => new Promise<Decision>(() => {}) };
    const dropped: unknown[] = [];
    const source = new Subject<unknown>();
    const options = {
      onLimit: 'drop',
      onDrop: (message: unknown) => dropped.push(message),
    } as const;
    source.pipe(limitStream(never, ASKED, options)).subscribe();
    const large = { bytes: Buffer.alloc(4 * 1024 * 1024) };
    for (let i = 0; i < 10; i++) source.next(large);
    // The first is being decided on, and three fit.
    expect(dropped).toHaveLength(6);
    for (let i = 0; i < 10; i++) source.next({ text: 'small' });
    expect(dropped).toHaveLength(6);
    source.next({ list: Array.from({ length: 8 }, () => 'x'.repeat(1024 * 1024)) });
    expect(dropped).toHaveLength(7);
  });

  it('pauses the call of messages that wait, until few are left', () => {
    const scheduler = new TestScheduler((actual, expected) => expect(actual).toEqual(expected));
    scheduler.run(({ flush }) => {
      const shaper = { tryAcquire: () => ({ ...PASSED, delayMs: 10 }) };
      const source = new Subject<number>();
      const told: string[] = [];
      const call = { pause: () => told.push('pause'), resume: () => told.push('resume') };
      const seen: number[] = [];
      source
        .pipe(limitStream(shaper, ASKED, { maxWaiting: 8, call }))
        .subscribe((message) => seen.push(message));
      for (let i = 0; i < 6; i++) source.next(i);
      expect(told).toEqual(['pause']);
      flush();
      expect(told).toEqual(['pause', 'resume']);
      expect(seen).toEqual([0, 1, 2, 3, 4, 5]);
    });
  });

  it('holds back a real sender that is faster, however large its messages are', async () => {
    const shaper = { tryAcquire: () => ({ ...PASSED, delayMs: 8 }) };
    let [received, passed, most] = [0, 0, 0];
    @Controller()
    class Orders {
      @GrpcStreamMethod('Odd', 'Collected')
      collected(messages: Observable<object>, _metadata: unknown, call: PausableCall) {
        return messages.pipe(
          tap(() => (most = Math.max(most, ++received - passed))),
          limitStream(shaper, ASKED, { call }),
          tap(() => passed++),
          count(),
          map((all) => ({ text: String(all) })),
        );
      }
    }
    const protoPath = join(root, 'test/transports/odd-requests.proto');
    const url = `127.0.0.1:${await freePort()}`;
    const options = { url, package: 'weir.test', protoPath };
    const app = await startService({ controllers: [Orders] }, 'stand-alone', {
      ...{ transport: Transport.GRPC, options },
    });
    const clients = new GrpcClients(url, protoPath);
    const message = { raw: Buffer.alloc(200_000) } as GrpcMessage;
    const all = Array.from({ length: 80 }, () => message);
    const { code, replies } = await clients.call('Odd.Collected', all);
    clients.close();
    await app.close();
    expect([code, replies]).toEqual([0, [{ text: '80' }]]);
    expect(most).toBeLessThanOrEqual(40);
  });

  it.each<[string, () => void]>([
    [
      'throws',
      () => {
        throw new Error('odd');
      },
    ],
    ['gives a promise that rejects', async () => Promise.reject(new Error('odd'))],
  ])('goes on where onDrop %s', async (_, onDrop) => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    const none = { tryAcquire: () => ({ ...PASSED, allowed: false }) };
    const passed = from([1, 2]).pipe(
      limitStream(none as never, ASKED, { onLimit: 'drop', onDrop }),
      toArray(),
    );
    expect(await lastValueFrom(passed)).toEqual([]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(warned).toHaveBeenCalledTimes(2);
    warned.mockRestore();
  });

  it('knows its options', () => {
    expect(() => limitStream(limiter, ASKED, { onLimit: 'wait' as never })).toThrow('onLimit');
    expect(() => limitStream(limiter, ASKED, { drop: true } as never)).toThrow('no such option');
  });
});
