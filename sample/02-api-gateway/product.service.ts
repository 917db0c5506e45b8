import { Injectable } from '@nestjs/common';
import { RateLimiter } from 'nestjs-weir';

@Injectable()
export class ProductService {
  constructor(private readonly limiter: RateLimiter) {}

  /** A limit on a resource inside: what the database has no room for gets the short answer. */
  detail(id: string): object {
    const isAllowed = this.limiter.allow('db-query', 'products');
    return isAllowed === true
      ? { id, name: `Product ${id}`, stock: 42 }
      : { id, name: `Product ${id}` };
  }
}
