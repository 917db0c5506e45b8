import { Global, Module, type DynamicModule, type Type } from '@nestjs/common';
import { RateLimitModule, type RateLimitModuleInput, type RoutePolicy } from 'nestjs-weir';
import { ManualClock } from '../../manual-clock.js';
import {
  CrowdedController,
  PlainController,
  SharedController,
  ShopController,
} from './shop.controller.js';

/**
 * Limits in memory, whose time the tests make; a small quota; a policy for all handlers; or limits
 * that Redis decides.
 */
export type Kind = 'memory' | 'quota' | 'applied' | 'redis';

const clock = new ManualClock();

@Global()
@Module({ providers: [{ provide: ManualClock, useValue: clock }], exports: [ManualClock] })
class ClockModule {}

const SHAPED: RoutePolicy = {
  algorithm: 'leaky-bucket',
  mode: 'shaper',
  rate: 1,
  period: '10s',
  burst: 2,
};

const OPTIONS: Record<Kind, RateLimitModuleInput> = {
  memory: {
    clock,
    policies: {
      two: { rate: 2, period: '1m' },
      messages: { rate: 3, period: '1m' },
      shaped: SHAPED,
      'shaped-stream': SHAPED,
    },
  },
  quota: {
    clock,
    quota: {
      cluster: { capacity: 100 },
      apps: { low: { guaranteed: 10, burst: 1000, priority: 3 } },
    },
    app: 'low',
    grpc: { metadata: true, domain: 'shop.example' },
    policies: { two: { rate: 2, period: '1m' } },
  },
  applied: { clock, apply: ['two'], policies: { two: { rate: 2, period: '1m' } } },
  redis: {
    store: { type: 'redis', url: process.env.REDIS_URL!, decisionTimeout: '10s' },
    policies: { stored: { rate: 150, period: '1h', sync: 'exact' } },
  },
};

const CONTROLLERS: Record<Kind, Type[]> = {
  memory: [ShopController],
  quota: [CrowdedController],
  applied: [PlainController],
  redis: [SharedController],
};

export function appModule(kind: Kind): DynamicModule {
  return {
    module: AppModule,
    imports: [ClockModule, RateLimitModule.forRoot(OPTIONS[kind])],
    controllers: CONTROLLERS[kind],
  };
}

class AppModule {}
