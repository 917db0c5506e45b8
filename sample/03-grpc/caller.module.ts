import { Module, type DynamicModule } from '@nestjs/common';
import { ClientsModule, Transport } from '@nestjs/microservices';
import { RateLimiter, RateLimitModule } from 'nestjs-weir';
import { limitCalls } from 'nestjs-weir/grpc';
import { PACKAGE, PROTO } from './inventory.js';

export const INVENTORY = Symbol('INVENTORY');

/** Another service, which calls the first one and limits itself. */
@Module({})
export class CallerModule {
  static at(url: string): DynamicModule {
    const client = {
      name: INVENTORY,
      inject: [RateLimiter],
      useFactory: (limiter: RateLimiter) => ({
        transport: Transport.GRPC as const,
        options: {
          url,
          package: PACKAGE,
          protoPath: PROTO,
          channelOptions: {
            interceptors: [limitCalls(limiter, ({ path }) => ({ policy: 'calls', key: path }))],
          },
        },
      }),
    };
    return {
      module: CallerModule,
      imports: [
        RateLimitModule.forRoot({ policies: { calls: { rate: '8/10s' } } }),
        ClientsModule.registerAsync([client]),
      ],
    };
  }
}
