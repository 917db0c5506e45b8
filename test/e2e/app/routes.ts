import {
  Inject,
  Injectable,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
  type Type,
} from '@nestjs/common';
import { Degrade, Overload, Protect, RateLimit, RateLimitCost, SkipRateLimit } from 'nestjs-weir';
import { type ManualClock } from '../../support/manual-clock.js';
import { callerOf, enter } from './caller.js';
import { IN_FLIGHT } from './limits.js';

/** The differences between the handlers of transports: their decorators, and answers. */
export interface Shape {
  host(): ClassDecorator;
  route(name: RouteName): MethodDecorator;
  /** `input` is the first argument of the handler: of gRPC, its message or its stream of them. */
  reply(input: unknown, text: string): unknown;
}

export const ROUTES = [
  'two',
  'costly',
  'cheap',
  'members',
  'quota',
  'watched',
  'plain',
  'limitFirst',
  'authFirst',
  'noAuth',
  'classAuth',
  'asked',
  'advance',
  'crowd',
  'relieve',
  'skipped',
  'stacked',
  'wide',
  'counted',
  'turnedAway',
  'degraded',
] as const;

export type RouteName = (typeof ROUTES)[number];

/** Lets in callers with a name, and counts its calls. */
class Auth implements CanActivate {
  asked = 0;

  canActivate(context: ExecutionContext): boolean {
    this.asked++;
    const { name } = callerOf(context);
    if (name !== undefined) enter(context, { id: name });
    return name !== undefined;
  }
}

/**
 * Moves the clock on: a guard is what sees the caller on every transport. One that answers later
 * would leave the streams of Nest 11 hanging.
 */
class Advance implements CanActivate {
  constructor(private readonly clock: ManualClock) {}

  canActivate(context: ExecutionContext): boolean {
    this.clock.advance(callerOf(context).advanceMs!);
    return true;
  }
}

/** The parts of the line that tell it what is under way. */
interface Line {
  started(): void;
  ended(): void;
  enter(waiting: object): void;
}

const WAITING = { tier: 0, run: () => {}, refuse: () => {}, isGone: () => false };

/** As many are under way as may be, and one waits: from now on the line refuses. */
@Injectable()
class Crowd implements CanActivate {
  constructor(@Inject(Overload) private readonly overload: object) {}

  canActivate(): boolean {
    const { line } = this.overload as { line: Line };
    for (let i = 0; i < IN_FLIGHT; i++) line.started();
    line.enter(WAITING);
    return true;
  }
}

@Injectable()
class Relief implements CanActivate {
  constructor(@Inject(Overload) private readonly overload: object) {}

  canActivate(): boolean {
    const { line } = this.overload as { line: Line };
    for (let i = 0; i < IN_FLIGHT; i++) line.ended();
    return true;
  }
}

/** The same handlers for every transport. */
export function routesOf({ host, route, reply }: Shape, clock: ManualClock): Type[] {
  const auth = new Auth();

  @host()
  class Routes {
    @route('two')
    @RateLimit('two')
    two(input: unknown): unknown {
      return reply(input, 'ok');
    }

    @route('costly')
    // The quota's maxCost is 1, and a fixed cost above it is refused at start.
    @RateLimit('three', { quota: false })
    @RateLimitCost(2)
    costly(input: unknown): unknown {
      return reply(input, 'ok');
    }

    @route('cheap')
    @RateLimit('three')
    cheap(input: unknown): unknown {
      return reply(input, 'ok');
    }

    @route('members')
    @RateLimit('members')
    members(input: unknown): unknown {
      return reply(input, 'ok');
    }

    @route('quota')
    @RateLimit()
    quota(input: unknown): unknown {
      return reply(input, 'ok');
    }

    @route('watched')
    @RateLimit('watched')
    watched(input: unknown): unknown {
      return reply(input, 'ok');
    }

    @route('plain')
    plain(input: unknown): unknown {
      return reply(input, 'ok');
    }

    // Nest runs the guards of a method from the last decorator to the first.
    @route('limitFirst')
    @UseGuards(auth)
    @RateLimit('two')
    limitFirst(input: unknown): unknown {
      return reply(input, 'ok');
    }

    @route('authFirst')
    @RateLimit('per-user')
    @UseGuards(auth)
    authFirst(input: unknown): unknown {
      return reply(input, 'ok');
    }

    @route('noAuth')
    @RateLimit('per-user')
    noAuth(input: unknown): unknown {
      return reply(input, 'ok');
    }

    @route('turnedAway')
    @Protect('closed')
    turnedAway(input: unknown): Promise<unknown> {
      return Promise.resolve(reply(input, 'ok'));
    }

    @route('asked')
    @SkipRateLimit()
    asked(input: unknown): unknown {
      return reply(input, String(auth.asked));
    }

    @route('crowd')
    @SkipRateLimit()
    @UseGuards(Crowd)
    crowd(input: unknown): unknown {
      return reply(input, 'ok');
    }

    @route('relieve')
    @SkipRateLimit()
    @UseGuards(Relief)
    relieve(input: unknown): unknown {
      return reply(input, 'ok');
    }

    @route('advance')
    @SkipRateLimit()
    @UseGuards(new Advance(clock))
    advance(input: unknown): unknown {
      return reply(input, 'ok');
    }
  }

  @host()
  @RateLimit('wide')
  class LimitedRoutes {
    @route('skipped')
    @SkipRateLimit()
    skipped(input: unknown): unknown {
      return reply(input, 'ok');
    }

    @route('stacked')
    @RateLimit('narrow')
    stacked(input: unknown): unknown {
      return reply(input, 'ok');
    }

    // The guard of the class runs before authentication, and must leave users to that of the method.
    @route('classAuth')
    @RateLimit('per-user')
    @UseGuards(auth)
    classAuth(input: unknown): unknown {
      return reply(input, 'ok');
    }

    @route('wide')
    wide(input: unknown): unknown {
      return reply(input, 'ok');
    }
  }

  @host()
  @RateLimit('everywhere')
  class CountedRoutes {
    @route('counted')
    @RateLimit('everywhere')
    counted(input: unknown): unknown {
      return reply(input, 'ok');
    }
  }

  return [Routes, LimitedRoutes, CountedRoutes];
}

/** Fallbacks, which only transports with one answer to one request can have. */
export function fallbacksOf({ host, route, reply }: Shape): Type {
  @host()
  class Fallbacks {
    @route('degraded')
    @Degrade({ level1: false, level2: false, level3: 'simplified', idempotent: true })
    @Protect('closed')
    degraded(input: unknown): Promise<unknown> {
      return Promise.resolve(reply(input, 'ok'));
    }

    simplified(): unknown {
      return reply(undefined, 'simplified');
    }
  }

  return Fallbacks;
}
