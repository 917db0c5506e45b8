import { Module, type DynamicModule } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { RateLimitModule } from 'nestjs-weir';
import { OperationsController } from './operations.controller.js';
import { ProductController } from './product.controller.js';
import { RedisSwitch } from './redis-switch.js';
import { settings } from './settings.js';
import { ShopClient } from './shop.client.js';
import { Switches } from './switches.js';
import { Upstreams } from './upstreams.js';
import { ViewerGuard } from './viewer.js';
import { Vitals } from './vitals.js';

@Module({})
export class AppModule {
  /** On Redis behind its switch, or in memory. */
  static on(redis: RedisSwitch | undefined): DynamicModule {
    return {
      module: AppModule,
      imports: [RateLimitModule.forRoot(settings(redis?.url))],
      controllers: [ProductController, OperationsController],
      providers: [
        ...[Upstreams, ShopClient, Switches, Vitals],
        ...(redis === undefined ? [] : [{ provide: RedisSwitch, useValue: redis }]),
        // Before the guards of the routes: limits and cached answers are by user.
        { provide: APP_GUARD, useClass: ViewerGuard },
      ],
    };
  }
}
