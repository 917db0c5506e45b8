import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { RateLimitModule } from 'nestjs-weir';
import { CallerGuard } from './caller.js';
import { limits } from './limits.js';
import { ProductController } from './product.controller.js';
import { ProductService } from './product.service.js';

@Module({
  imports: [RateLimitModule.forRoot(limits)],
  controllers: [ProductController],
  providers: [
    ProductService,
    // Guards of the root module run before those of the modules it imports: callers have a name
    // when limits ask for it. Addresses are limited earlier still.
    { provide: APP_GUARD, useClass: CallerGuard },
  ],
})
export class AppModule {}
