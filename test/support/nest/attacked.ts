import {
  Controller,
  Injectable,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
  type INestApplicationContext,
  type ModuleMetadata,
  type Type,
} from '@nestjs/common';
import { MessagePattern } from '@nestjs/microservices';
import {
  RateLimit,
  RateLimitGuard,
  RateLimitModule,
  RequestFaults,
  type PolicyUse,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { ManualClock, settle } from '../manual-clock.js';
import { type MessageApp } from './message-app.js';
import { type LogLines } from './warnings.js';

/**
 * Attacks of callers on every transport: promises where values are expected (H5), words for the log (M2), and one
 * policy for two keys or at two prices (M3). HTTP/1 has its own in test/limits/hostile-callers.
 */

interface Payload {
  readonly words: string;
  known?: boolean;
}

interface HttpRequest {
  readonly headers: Record<string, string>;
  attack?: Payload;
}

function payloadOf(context: ExecutionContext): Payload {
  const first = context.getArgByIndex<HttpRequest & Payload>(0);
  const type = context.getType<string>();
  if (type === 'http')
    return (first.attack ??= { words: decodeURIComponent(first.headers.words!) });
  return type === 'rpc' ? first : context.getArgByIndex<Payload>(1);
}
const wordsOf = (context: ExecutionContext): string => payloadOf(context).words;

/** A function that is not declared async, and still gives a promise. */
const rejected = (): never => Promise.reject(new Error('bad token')) as never;

const HOUR = { period: '1h', key: 'global' } as const;
const ONLY = { quota: false } as const;

export function attackedLimits(clock: ManualClock): RateLimitModuleInput {
  return {
    clock,
    user: (context) => (wordsOf(context) === 'bad' ? rejected() : Promise.resolve('ada')),
    policies: {
      three: { rate: 3, ...HOUR },
      priced: { rate: 10, ...HOUR, cost: (context) => (payloadOf(context).known ? 5 : 2) },
      'key-promised': { rate: 2, ...HOUR, key: rejected },
      'skip-promised': { rate: 2, ...HOUR, skipIf: rejected },
      'cost-promised': { rate: 2, ...HOUR, cost: rejected },
      'per-user': { rate: 2, ...HOUR, key: 'user' },
      tiered: {
        ...{ rate: 1, ...HOUR, tiers: { vip: { rate: 3 } } },
        tier: (context) => (wordsOf(context) === 'bad' ? rejected() : Promise.resolve('vip')),
      },
      throwing: {
        ...{ rate: 1000, ...HOUR },
        key: (context) => {
          throw new Error(wordsOf(context));
        },
      },
    },
  };
}

const twoKeys = (context: ExecutionContext): PolicyUse[] => [
  { policy: 'three', key: wordsOf(context) },
  { policy: 'three', key: 'tenant' },
];

/** The routes, by the names that their handlers have. */
const ROUTES = {
  TwoKeys: RateLimit(twoKeys, ONLY),
  Difference: RateLimit('priced', ONLY),
  Key: RateLimit('key-promised', ONLY),
  Skip: RateLimit('skip-promised', ONLY),
  Cost: RateLimit('cost-promised', ONLY),
  User: RateLimit('per-user', ONLY),
  Tier: RateLimit('tiered', ONLY),
  Failing: RateLimit('throwing', ONLY),
};
type Route = keyof typeof ROUTES;
const NAMES = Object.keys(ROUTES) as Route[];

/** Comes between two guards of ours, and makes a request dearer. */
@Injectable()
class Knows implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    payloadOf(context).known = true;
    return true;
  }
}

/** A class of handlers; `bind` makes one of a method of that name. */
export function attackedHandlers(
  bind: (target: object, name: string) => MethodDecorator,
  decorate: ClassDecorator,
): Type {
  class Handlers {}
  const methods = Handlers.prototype as unknown as Record<Route, () => object>;
  for (const name of NAMES) {
    methods[name] = () => ({ text: 'ok' });
    const descriptor = Object.getOwnPropertyDescriptor(methods, name)!;
    ROUTES[name](methods, name, descriptor);
    bind(methods, name)(methods, name, descriptor);
  }
  const { Difference } = methods;
  // Ours, another, and then the one that the decorator has bound.
  const bound = Reflect.getMetadata('__guards__', Difference) as Type<CanActivate>[];
  Reflect.defineMetadata('__guards__', [], Difference);
  UseGuards(RateLimitGuard, Knows, ...bound)(methods, 'Difference', { value: Difference });
  decorate(Handlers);
  return Handlers;
}

export interface AttackedApp {
  readonly app: Pick<INestApplicationContext, 'get'>;
  /** 'ok', or the code of the error. */
  ask(route: Route, words: string): Promise<string>;
}

/** A microservice of these routes. */
export function attackedMessages(clock: ManualClock): ModuleMetadata {
  return {
    imports: [RateLimitModule.forRoot(attackedLimits(clock))],
    controllers: [attackedHandlers((_, route) => MessagePattern(route), Controller())],
  };
}

export function attackedWire({ app, send }: MessageApp): AttackedApp {
  return { app, ask: (route, words) => send(route, { words }).then(told, told) };
}

/** The text of an answer, or the code of an error. */
export function told(answer: unknown): string {
  const { text, code } = (answer ?? {}) as { text?: string; code?: string };
  return text ?? code ?? JSON.stringify(answer);
}

/** The attacks, as tests; the application has started when they run. */
export function attacks(clock: ManualClock, log: LogLines, started: () => AttackedApp): void {
  const DENIED = 'RATE_LIMITED';
  const unhandled: unknown[] = [];
  const listen = (error: unknown): void => void unhandled.push(error);
  beforeAll(() => void process.on('unhandledRejection', listen));
  afterAll(() => void process.off('unhandledRejection', listen));
  beforeEach(() => {
    clock.advance(3_600_000);
    log.take();
  });
  afterEach(() => {
    expect([unhandled.splice(0), log.stacks.splice(0)]).toEqual([[], []]);
  });
  const answers = async (route: Route, ...words: string[]): Promise<string[]> => {
    const all: string[] = [];
    for (const one of words) all.push(await started().ask(route, one));
    await settle();
    return all;
  };
  const warnings = (): string[] => log.take().filter((line) => line.startsWith('warn'));

  it('one policy with two keys is two charges', async () => {
    const all = await answers('TwoKeys', 'u0', 'u1', 'u2', 'u3', 'u4');
    expect(all).toEqual(['ok', 'ok', 'ok', DENIED, DENIED]);
  });

  it('a later charge that is higher pays the difference', async () => {
    expect(await answers('Difference', 'a', 'b', 'c')).toEqual(['ok', 'ok', DENIED]);
  });

  it.each(['Key', 'Skip', 'Cost'] as const)(
    'a promise that rejects, where a value is expected: %s',
    async (route) => {
      expect(await answers(route, 'a', 'b', 'c')).toEqual(['ok', 'ok', DENIED]);
      expect(warnings()).toHaveLength(1);
    },
  );

  it('a user and a tier are waited for; those that are refused are anonymous and the default', async () => {
    expect(await answers('User', 'a', 'b', 'c')).toEqual(['ok', 'ok', DENIED]);
    expect(await answers('User', 'bad', 'bad', 'bad')).toEqual(['ok', 'ok', DENIED]);
    expect(await answers('Tier', 'a', 'b', 'c', 'd')).toEqual(['ok', 'ok', 'ok', DENIED]);
    expect(await answers('Tier', 'bad', 'bad')).toEqual(['ok', DENIED]);
    const faults = started().app.get(RequestFaults).byCause();
    expect(faults).toMatchObject({ 'user: failed': 3, 'tiered: tier failed': 2 });
  });

  it('words are cut and quoted, in one line a minute', async () => {
    const words = Array.from(
      { length: 20 },
      (_, i) => `bad ${i}\n[Nest] forged\u001b[2J${'x'.repeat(500)}`,
    );
    expect(await answers('Failing', ...words)).toEqual(words.map(() => 'ok'));
    const [line, ...more] = warnings();
    expect(more).toEqual([]);
    expect(line).toMatch(
      /^warn Policy 'throwing': its key failed \("bad 0\\n\[Nest\] forged\\u001b\[2Jx+…"\)/,
    );
    expect(line!.length).toBeLessThan(250);
    clock.advance(60_000);
    await answers('Failing', 'once more');
    expect(warnings()).toEqual([expect.stringMatching(/"once more".*20 requests since/)]);
  });
}
