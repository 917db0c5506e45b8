import { Controller } from '@nestjs/common';
import { GrpcMethod, GrpcStreamMethod } from '@nestjs/microservices';
import { RateLimit, RateLimiter } from 'nestjs-weir';
import { limitStream } from 'nestjs-weir/grpc';
import { count, from, map, type Observable } from 'rxjs';
import { type Item, type Stock, type Summary } from './inventory.js';

@Controller()
export class InventoryController {
  constructor(private readonly limiter: RateLimiter) {}

  /** So many for each caller and each article. */
  @GrpcMethod('Inventory')
  @RateLimit({ rate: '3/10s', key: ['ip', { param: 'sku' }] })
  get({ sku }: Item): Stock {
    return { sku, pieces: 7 };
  }

  /** A stream is asked for once, however long it is. */
  @GrpcMethod('Inventory')
  @RateLimit('streams')
  watch({ sku }: Item): Observable<Stock> {
    return from([7, 6, 5].map((pieces) => ({ sku, pieces })));
  }

  /** The operator asks for each message as well, and leaves out those that are too many. */
  @GrpcStreamMethod('Inventory')
  @RateLimit('streams')
  import(items: Observable<Item>): Observable<Summary> {
    return items.pipe(
      limitStream(this.limiter, { policy: 'imports', key: 'all' }, { onLimit: 'drop' }),
      count(),
      map((imported) => ({ imported })),
    );
  }
}
