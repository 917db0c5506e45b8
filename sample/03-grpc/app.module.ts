import { Module } from '@nestjs/common';
import { RateLimitModule } from 'nestjs-weir';
import { InventoryController } from './inventory.controller.js';

@Module({
  imports: [
    RateLimitModule.forRoot({
      policies: {
        streams: { rate: '2/10s' },
        imports: { rate: '5/10s' },
      },
      grpc: { domain: 'inventory.example' },
    }),
  ],
  controllers: [InventoryController],
})
export class AppModule {}
