import { Controller, Get, Module } from '@nestjs/common';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { RateLimit, RateLimitModule } from 'nestjs-weir';

@Controller()
class PageController {
  @Get()
  @RateLimit({ rate: '1/min', key: 'ip' })
  page() {
    return 'ok';
  }
}

@Module({ imports: [RateLimitModule.forRoot()], controllers: [PageController] })
export class PageModule {}

/** nginx on the same host: proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; */
export function behindNginx(app: NestExpressApplication): void {
  app.set('trust proxy', 'loopback');
}

/** A load balancer (AWS ALB, Google, Azure) that adds the caller to X-Forwarded-For: one hop. */
export function behindLoadBalancer(app: NestExpressApplication): void {
  app.set('trust proxy', 1);
}

/** Cloudflare, then a load balancer of yours: two hops. The origin has to refuse everybody else. */
export function behindCloudflare(app: NestExpressApplication): void {
  app.set('trust proxy', 2);
}
