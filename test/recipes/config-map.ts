import { Controller, Get, Module } from '@nestjs/common';
import { RateLimit, RateLimitModule, SkipRateLimit } from 'nestjs-weir';

@Controller()
class PageController {
  @Get()
  @RateLimit('page')
  page() {
    return 'ok';
  }

  @Get('livez')
  @SkipRateLimit()
  live() {
    return 'alive';
  }
}

@Module({
  imports: [
    RateLimitModule.forRoot({
      policies: { page: { rate: '100/min' } }, // what holds without the file
      config: { file: process.env.WEIR_FILE ?? '/etc/weir/weir.yaml' },
    }),
  ],
  controllers: [PageController],
})
export class ConfigMapModule {}
