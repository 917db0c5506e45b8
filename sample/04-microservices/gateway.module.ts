import { Module, type DynamicModule } from '@nestjs/common';
import { ClientsModule, Transport } from '@nestjs/microservices';
import { GatewayController } from './gateway.controller.js';

@Module({})
export class GatewayModule {
  static of(options: { host: string; port: number }): DynamicModule {
    return {
      module: GatewayModule,
      imports: [ClientsModule.register([{ name: 'SERVICE', transport: Transport.TCP, options }])],
      controllers: [GatewayController],
    };
  }
}
