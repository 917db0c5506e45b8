import { Controller, Get, Query } from '@nestjs/common';
import { RateLimit } from 'nestjs-weir';
import { ProductService } from './product.service.js';

@Controller('api/product')
@RateLimit('user')
@RateLimit('merchant')
export class ProductController {
  constructor(private readonly products: ProductService) {}

  /** The heart of the shop: it is limited only by what would break it. */
  @Get('detail')
  @RateLimit('uri')
  @RateLimit('product')
  detail(@Query('id') id: string): object {
    return this.products.detail(id);
  }

  @Get('reviews')
  @RateLimit('non-core')
  @RateLimit('merchant-api')
  reviews(@Query('id') id: string): object {
    return { id, reviews: [] };
  }
}
