import { Controller, Get, NotFoundException, Param, Req } from '@nestjs/common';
import { Degrade, degradeMessage, RateLimit, type DegradeContext } from 'nestjs-weir';
import { RESOURCE } from './settings.js';
import { ShopClient } from './shop.client.js';
import type { ViewerRequest } from './viewer.js';

@Controller('products')
export class ProductController {
  constructor(private readonly shop: ShopClient) {}

  /**
   * Level 0. What it gives is kept for level 1 (in the store, 30 s) and level 2 (in this process, 5 min),
   * for this user alone.
   */
  @Get(':id')
  @RateLimit('view')
  @Degrade({
    resource: RESOURCE,
    level3: 'core',
    coreFields: ['id', 'viewer', 'name', 'price', 'image'],
    level4: degradeMessage('The product cannot be loaded at the moment. Please try again later.'),
  })
  async detail(@Param('id') id: string, @Req() request: ViewerRequest): Promise<object> {
    if (!/^\d{1,6}$/.test(id)) throw new NotFoundException(`There is no product ${id}.`);
    const viewer = request.user.id;
    const [base, reviews, sales, recommendations] = await Promise.all([
      this.shop.base(id),
      this.shop.reviews(id),
      this.shop.sales(id),
      this.shop.recommendations(id, viewer),
    ]);
    return { ...base, viewer, reviews, sales, recommendations };
  }

  /** Level 3: one service instead of four, and only what nobody can do without. */
  async core({ params, request }: DegradeContext): Promise<object> {
    const { id } = params as { id: string };
    const base = await this.shop.base(id);
    return { ...base, viewer: (request as ViewerRequest).user.id };
  }
}
