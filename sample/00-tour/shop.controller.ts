import { Controller, Get, Header, Inject, Param, Post } from '@nestjs/common';
import { Degrade, RateLimit } from 'nestjs-weir';
import { Catalog, type Product } from './catalog.js';
import { welcome } from './welcome.js';

/** Of all nodes, once they are known. */
export const ADDRESSES = Symbol('addresses of the nodes');

/** Three apps that share a capacity, two limits by key, and a page that is still there when its database is not. */
@Controller()
export class ShopController {
  constructor(
    private readonly catalog: Catalog,
    @Inject(ADDRESSES) private readonly addresses: readonly string[],
  ) {}

  @Get()
  @Header('content-type', 'text/html; charset=utf-8')
  welcome(): string {
    return welcome(this.addresses);
  }

  @Get('checkout')
  @RateLimit()
  checkout(): object {
    return { paid: true };
  }

  @Get('search')
  @RateLimit('search-user')
  search(): object {
    return { found: ['lamp', 'desk'] };
  }

  @Get('reports')
  @RateLimit()
  reports(): object {
    return { rows: 12 };
  }

  @Post('login')
  @RateLimit('login-ip', { quota: false })
  login(): object {
    return { welcome: true };
  }

  @Get('products/:id')
  @Degrade({
    resource: 'product-page',
    shared: true,
    level3: 'core',
    level4: { name: 'A product', note: 'The details are not available just now.' },
  })
  @RateLimit('product-view', { quota: false })
  product(@Param('id') id: string): Promise<Product> {
    return this.catalog.product(id);
  }

  /** Level 3: what is known without the database. */
  core(): object {
    return { name: 'A product', price: 'see the shop window' };
  }
}
