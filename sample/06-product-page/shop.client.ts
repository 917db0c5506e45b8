import { Injectable } from '@nestjs/common';
import { currentRun, Protect } from 'nestjs-weir';
import { type BaseInfo, type Recommendations, type Review, type Sales } from './catalog.js';
import { Upstreams, type UpstreamName } from './upstreams.js';

/** What the page asks of others. None of them can take more of its time than its deadline. */
@Injectable()
export class ShopClient {
  constructor(private readonly upstreams: Upstreams) {}

  @Protect('base')
  base(id: string): Promise<BaseInfo> {
    return this.get('base', id);
  }

  @Protect('reviews')
  reviews(id: string): Promise<Review[]> {
    return this.get('reviews', id);
  }

  @Protect('sales')
  sales(id: string): Promise<Sales> {
    return this.get('sales', id);
  }

  @Protect('recommendations')
  recommendations(id: string, viewer: string): Promise<Recommendations> {
    return this.get('recommendations', `${id}?viewer=${encodeURIComponent(viewer)}`);
  }

  private async get<T>(name: UpstreamName, path: string): Promise<T> {
    const { signal } = currentRun()!;
    const response = await fetch(`${this.upstreams.urlOf(name)}/${path}`, { signal });
    return (await response.json()) as T;
  }
}
