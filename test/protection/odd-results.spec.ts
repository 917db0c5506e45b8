import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  BigValueError,
  Protect,
  Protection,
  RateLimitModule,
  type ResourceOptions,
} from 'nestjs-weir';
import { ManualClock, settle } from '../support/manual-clock.js';
import { Bench } from './bench.js';

/** Results and errors as no type allows them: each caller gets an answer, and each slot is free again. */

const thrower = (what: string) => (): never => {
  throw new Error(what);
};
const withGetter = (name: string): object =>
  Object.defineProperty({}, name, { get: thrower(`get ${name}`) });
const noPrototype = new Proxy({}, { getPrototypeOf: thrower('getPrototypeOf') });

const RESULTS: Readonly<Record<string, () => unknown>> = {
  'a then that throws': () => ({ then: thrower('then') }),
  'a then that cannot be read': () => withGetter('then'),
  'a thenable that rejects': () => ({
    then: (_: unknown, reject: (error: Error) => void) => reject(new Error('thenable')),
  }),
  'a promise whose constructor cannot be read': () =>
    Object.defineProperty(Promise.resolve(), 'constructor', { get: thrower('constructor') }),
};

const ERRORS: Readonly<Record<string, unknown>> = {
  nothing: undefined,
  'an error whose name cannot be read': withGetter('name'),
  'an error without a prototype to look at': noPrototype,
  'an error that is a promise': { name: 'AbortError', then: thrower('then') },
};

const WAYS: Readonly<Record<string, ResourceOptions>> = {
  'a bulkhead': { bulkhead: { maxInFlight: 1, maxQueue: 0 }, breaker: { minimumCalls: 1000 } },
  'a deadline as well': {
    ...{ bulkhead: { maxInFlight: 1, maxQueue: 0 }, breaker: { minimumCalls: 1000 } },
    ...{ deadline: '1s', slow: { threshold: 1 } },
  },
};

const unhandled: unknown[] = [];
const listen = (error: unknown): void => void unhandled.push(error);
beforeAll(() => void process.on('unhandledRejection', listen));
afterAll(() => void process.off('unhandledRejection', listen));
afterEach(async () => {
  await new Promise((resolve) => setImmediate(resolve));
  expect(unhandled.splice(0)).toEqual([]);
});

describe.each(Object.keys(WAYS))('behind %s', (way) => {
  it.each(Object.keys(RESULTS))('%s is an error of the call', async (what) => {
    const { protection } = new Bench(WAYS[way]!);
    const ended = protection.run('db', RESULTS[what]!);
    await expect(ended).rejects.toThrow(Error);
    expect(protection.stats().db).toMatchObject({ failed: 1, inFlight: 0 });
    expect(await protection.run('db', () => 'next')).toBe('next');
  });

  it.each(Object.keys(ERRORS))('%s is passed on, and its slot is free', async (what) => {
    const bench = new Bench(WAYS[way]!);
    const seen: unknown[] = [];
    const work = async (): Promise<never> => {
      await Promise.resolve();
      throw ERRORS[what];
    };
    bench.protection.run('db', work).then(undefined, (error: unknown) => void seen.push(error));
    await settle();
    // Not `toBe`: what cannot be looked at cannot be printed either.
    expect(seen.map((error) => error === ERRORS[what])).toEqual([true]);
    expect(bench.stats).toMatchObject({ inFlight: 0, waiting: 0 });
    expect(await bench.protection.run('db', () => 'next')).toBe('next');
  });

  it.each<[string, () => unknown]>([
    ['rejects', () => Promise.reject(new Error('verdict'))],
    ['cannot be read', () => withGetter('then')],
  ])('a verdict that %s is none: the resource has failed', async (_, isFailure) => {
    const bench = new Bench({ ...WAYS[way], isFailure: isFailure as () => boolean });
    const call = bench.call();
    await call.fail();
    expect([call.isDone, bench.stats.failed, bench.stats.inFlight]).toEqual([true, 1, 0]);
  });
});

describe('a label', () => {
  it.each<[string, () => unknown]>([
    ['is a promise that rejects', () => Promise.reject(new Error('label'))],
    ['is no text', () => 7],
    [
      'throws what has no words',
      () => {
        throw Object.create(null);
      },
    ],
  ])('that %s costs no call its answer', async (_, label) => {
    const bench = new Bench({ bulkhead: { maxInFlight: 1 }, slow: { threshold: 1 } });
    const call = bench.call({ label: label as () => string });
    await bench.advance(10);
    await call.succeed();
    expect([call.value, bench.stats.inFlight]).toEqual(['done', 0]);
    const [told] = bench.told as { slow: { label: unknown } }[];
    expect(['string', 'undefined']).toContain(typeof told!.slow.label);
  });
});

it('a value that is nested deeper than JSON can write is too big, and a fallback answers', async () => {
  let deep: unknown = 1;
  for (let i = 0; i < 100_000; i++) deep = [deep];
  const { protection, stats } = new Bench({ maxValueBytes: 1000 });
  await expect(protection.run('db', () => 1, { value: deep })).rejects.toThrow(BigValueError);
  const instead = { value: deep, fallback: () => 'instead' };
  expect(await protection.run('db', () => 1, instead)).toBe('instead');
  expect(stats).toMatchObject({ inFlight: 0 });
});

it('methods under @Protect keep to it', async () => {
  @Injectable()
  class Products {
    @Protect('db', { bulkhead: { maxInFlight: 1, maxQueue: 0 }, deadline: '1s' })
    find(what: string): Promise<unknown> {
      if (what in ERRORS) throw ERRORS[what];
      return RESULTS[what]!() as Promise<unknown>;
    }

    @Protect('db', {
      call: () => {
        throw ERRORS['an error whose name cannot be read'];
      },
    })
    about(): Promise<unknown> {
      return Promise.resolve();
    }
  }
  @Module({
    imports: [RateLimitModule.forRoot({ clock: new ManualClock() })],
    providers: [Products],
  })
  class AppModule {}
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  const products = app.get(Products);
  const hasFailed = (call: Promise<unknown>): Promise<boolean> =>
    call.then(
      () => false,
      () => true,
    );
  for (const what of [...Object.keys(RESULTS), ...Object.keys(ERRORS)]) {
    expect([what, await hasFailed(products.find(what))]).toEqual([what, true]);
  }
  expect(await hasFailed(products.about())).toBe(true);
  await settle();
  expect(app.get(Protection).stats().db).toMatchObject({ inFlight: 0, full: 0 });
  await app.close();
});
