import { Injectable, type ExecutionContext } from '@nestjs/common';
import { Protect, type RateLimitModuleInput } from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { LogLines } from '../support/nest/warnings.js';

/** Requests that callers send so that something of ours fails: each gets an answer, and no fault of ours. */

/** Expects of a spec that nothing is logged with a stack, and that no promise fails unheard. */
export function expectNoFaults(): void {
  const log = new LogLines();
  const unhandled: unknown[] = [];
  const listen = (error: unknown): void => void unhandled.push(error);
  beforeAll(() => {
    process.on('unhandledRejection', listen);
    log.start();
  });
  afterAll(() => {
    log.stop();
    process.off('unhandledRejection', listen);
  });
  afterEach(() => {
    expect([log.stacks.splice(0), unhandled.splice(0)]).toEqual([[], []]);
  });
}

/** A careless application's use of a payload: types say that it is there. */
export function field<T>(name: string) {
  return (context: ExecutionContext): T => payloadOf(context)[name] as T;
}

function payloadOf(context: ExecutionContext): Record<string, unknown> {
  const args = context.getArgs<Record<string, Record<string, unknown>>[]>();
  switch (context.getType<string>()) {
    case 'http':
      return args[0]!.body!;
    case 'graphql':
      return args[1]!.any!;
    case 'ws':
      return args[1]!;
    default:
      return args[0]!;
  }
}

export const limits = (param: string): RateLimitModuleInput => ({
  clock: new ManualClock(),
  app: field<string>('app'),
  quota: { apps: { orders: { guaranteed: 1000, burst: 1000 } } },
  policies: {
    keyed: { rate: 1e6, key: [{ param }, { header: 'x-sender' }] },
    priced: { rate: 1e6, key: 'global', cost: field<number>('cost'), tier: field<string>('tier') },
  },
});
export const ONLY = { quota: false } as const;

@Injectable()
export class Backend {
  @Protect('backend', {
    deadline: '1s',
    bulkhead: { maxInFlight: 1, maxQueue: 0 },
    maxValueBytes: 1e6,
    call: (value: unknown) => ({ value }),
    fallback: () => ({ text: 'ok' }),
  })
  async ask(_value: unknown): Promise<object> {
    await Promise.resolve();
    return { text: 'ok' };
  }
}

export const levels = (count: number): string => `${'['.repeat(count)}${']'.repeat(count)}`;
export const DEEP = levels(10_000);
export const NAMES =
  '{"__proto__":{"sender":"x"},"constructor":{"prototype":{"polluted":1}},"tier":"__proto__","app":"constructor","sender":"__proto__","cost":1}';

/** Payloads as JSON. */
export const PAYLOADS: Readonly<Record<string, string>> = {
  null: 'null',
  'a list': '[[],null,{}]',
  'a number': '17',
  'a text': '"text"',
  'a long text': `"${'x'.repeat(90_000)}"`,
  'wrong types': '{"sender":{},"cost":"1","tier":7,"app":[]}',
  'no figures': '{"sender":null,"cost":null,"tier":null,"app":null}',
  'a negative cost': '{"sender":"a","cost":-1,"app":"orders"}',
  'a cost without end': '{"sender":"a","cost":1e999,"app":"orders"}',
  'names of prototypes': NAMES,
  'something to wait for': '{"sender":{"then":1},"then":{"then":2},"cost":{"then":3}}',
  '10,000 levels': DEEP,
  'levels in each field': `{"sender":${DEEP},"cost":${DEEP},"tier":${DEEP},"app":${DEEP}}`,
  'lone surrogates': '{"sender":"\\ud800","tier":"\\udfff","app":"\\ud800","cost":1}',
};

export const REFUSED = ['COST_OUT_OF_RANGE', 'UNKNOWN_APP', 'UNKNOWN_LIMIT'];
