import {
  Controller,
  Inject,
  Injectable,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { GrpcMethod, GrpcStreamCall, GrpcStreamMethod, RpcException } from '@nestjs/microservices';
import { type ServerDuplexStream, type ServerReadableStream } from '@grpc/grpc-js';
import { RateLimit, RateLimiter, rateLimitOf } from 'nestjs-weir';
import { limitStream } from 'nestjs-weir/grpc';
import { from, map, toArray, type Observable } from 'rxjs';
import { ManualClock } from '../../manual-clock.js';

export interface Item {
  readonly name?: string;
  readonly sku?: unknown;
  readonly number?: number;
}

export interface Reply {
  readonly text?: string;
  readonly numbers?: readonly number[];
}

type BareCall = ServerDuplexStream<Item, Reply>;

/** Knows callers by a header, and says so where the library looks. */
@Injectable()
class FakeAuth implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const call = context.getArgByIndex<{
      metadata: { get(name: string): unknown[] };
      user?: unknown;
    }>(2);
    const [id] = call.metadata.get('x-user');
    if (id !== undefined) call.user = { id };
    return true;
  }
}

@Controller()
export class ShopController {
  constructor(
    @Inject(RateLimiter) private readonly limiter: RateLimiter,
    @Inject(ManualClock) private readonly clock: ManualClock,
  ) {}

  @GrpcMethod('Shop')
  @RateLimit('two')
  named(_item: Item, _metadata: unknown, call: object): Reply {
    return { text: `${rateLimitOf(call)?.remaining} left` };
  }

  @GrpcMethod('Shop')
  @RateLimit({ rate: 1, period: '1m', key: { header: 'X-Tenant' } })
  byKey({ name }: Item): Reply {
    return { text: name };
  }

  @GrpcMethod('Shop')
  @RateLimit({ rate: 1, period: '1m', key: [{ param: 'sku' }, { param: 'request.name' }] })
  bySku({ name }: Item): Reply {
    return { text: name };
  }

  // Nest runs the guards of a method from the last decorator to the first.
  @GrpcMethod('Shop')
  @RateLimit({ rate: 1, period: '1m', key: 'user' })
  @UseGuards(FakeAuth)
  byUser(): Reply {
    return { text: 'ok' };
  }

  @GrpcMethod('Shop')
  @UseGuards(FakeAuth)
  @RateLimit({ rate: 1, period: '1m', key: 'user' })
  byUserTooEarly(): Reply {
    return { text: 'ok' };
  }

  @GrpcMethod('Shop')
  @RateLimit('shaped')
  shaped(): Reply {
    return { text: 'ok' };
  }

  @GrpcMethod('Shop')
  @RateLimit({ rate: 1, period: '1m' })
  list({ number = 0 }: Item): Observable<Reply> {
    return from(Array.from({ length: number }, (_, i) => ({ text: `${i}` })));
  }

  @GrpcStreamMethod('Shop')
  @RateLimit({ rate: 1, period: '1m' })
  collect(items: Observable<Item>): Observable<Reply> {
    return items.pipe(map(numberOf), toArray(), map(asNumbers));
  }

  // Above or below makes no difference.
  @RateLimit({ rate: 1, period: '1m' })
  @GrpcStreamMethod('Shop')
  chat(items: Observable<Item>): Observable<Reply> {
    return items.pipe(map(({ name }) => ({ text: name })));
  }

  @GrpcStreamCall('Shop')
  @RateLimit({ rate: 1, period: '1m' })
  bareChat(call: BareCall): void {
    echo(call);
  }

  @GrpcStreamCall('Shop')
  @RateLimit({ rate: 1, period: '1m' })
  bareCollect(
    call: ServerReadableStream<Item, Reply>,
    callback: (error: null, reply: Reply) => void,
  ): void {
    const numbers: number[] = [];
    call.on('data', (item: Item) => numbers.push(numberOf(item)));
    call.on('end', () => callback(null, { numbers }));
  }

  @GrpcStreamCall('Shop')
  @RateLimit({
    rate: 1,
    period: '1m',
    rejection: () => new RpcException({ code: 7, message: 'in words of its own' }),
  })
  bareOwnWords(call: BareCall): void {
    echo(call);
  }

  @GrpcStreamCall('Shop')
  @RateLimit({
    rate: 1,
    period: '1m',
    cost: () => {
      throw new Error('no such price');
    },
  })
  bareBroken(call: BareCall): void {
    echo(call);
  }

  @GrpcStreamCall('Shop')
  @RateLimit('shaped-stream')
  bareShaped(call: BareCall): void {
    echo(call);
  }

  @GrpcStreamMethod('Shop')
  drops(items: Observable<Item>): Observable<Reply> {
    const all = { policy: 'messages', key: 'all' };
    return items.pipe(limitStream(this.limiter, all, { onLimit: 'drop' }), map(asText));
  }

  @GrpcStreamMethod('Shop')
  ends(items: Observable<Item>): Observable<Reply> {
    const byName = ({ name = '' }: Item) =>
      name === 'free' ? undefined : { policy: 'messages', key: name };
    return items.pipe(limitStream(this.limiter, byName), map(asText));
  }

  @GrpcMethod('Shop')
  free(): Reply {
    return { text: 'ok' };
  }

  @GrpcMethod('Shop')
  async advance({ number = 0 }: Item): Promise<Reply> {
    await this.clock.advanceAsync(number);
    return { text: `${this.clock.pending}` };
  }
}

/** Charges the quota, where there is one. */
@Controller()
export class CrowdedController {
  @GrpcMethod('Crowded')
  @RateLimit()
  enter(): Reply {
    return { text: 'ok' };
  }

  @GrpcMethod('Crowded')
  @RateLimit('two', { quota: false })
  look(): Reply {
    return { text: 'ok' };
  }
}

/** Says nothing about limits. */
@Controller()
export class PlainController {
  @GrpcMethod('Plain')
  say(): Reply {
    return { text: 'ok' };
  }

  @GrpcStreamCall('Plain')
  bareChat(call: BareCall): void {
    echo(call);
  }
}

/** Every decision is one of the store. */
@Controller()
export class SharedController {
  @GrpcStreamMethod('Shared')
  @RateLimit('stored')
  collect(items: Observable<Item>): Observable<Reply> {
    return items.pipe(map(numberOf), toArray(), map(asNumbers));
  }
}

function echo(call: BareCall): void {
  call.on('data', ({ name }: Item) => call.write({ text: name }));
  call.on('end', () => call.end());
}

function numberOf({ number = 0 }: Item): number {
  return number;
}

function asNumbers(numbers: number[]): Reply {
  return { numbers };
}

function asText({ number = 0 }: Item): Reply {
  return { text: `${number}` };
}
