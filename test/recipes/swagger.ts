import { Controller, Get, Module } from '@nestjs/common';
import { RateLimit, RateLimitModule } from 'nestjs-weir';

/**
 * The 429 of this library as OpenAPI has it. With @nestjs/swagger:
 * `@ApiResponse({ status: 429, ...TOO_MANY_REQUESTS })` on a handler or a class, or for all
 * `new DocumentBuilder().addGlobalResponse({ status: 429, ...TOO_MANY_REQUESTS })`.
 */
export const TOO_MANY_REQUESTS = {
  description: 'Over a limit; Retry-After says when to come back',
  headers: {
    'Retry-After': { schema: { type: 'integer' }, description: 'Seconds' },
    RateLimit: { schema: { type: 'string' } },
    'RateLimit-Policy': { schema: { type: 'string' } },
  },
  content: {
    'application/problem+json': {
      schema: {
        type: 'object',
        required: ['type', 'title', 'status', 'code', 'retryAfterMs'],
        properties: {
          type: { type: 'string' },
          title: { type: 'string' },
          status: { type: 'integer' },
          detail: { type: 'string' },
          statusCode: { type: 'integer' },
          message: { type: 'string' },
          code: { type: 'string', enum: ['RATE_LIMITED'] },
          retryAfterMs: { type: 'integer' },
          'violated-policies': { type: 'array', items: { type: 'string' } },
        },
      },
    },
  },
};

@Controller()
class PageController {
  @Get()
  @RateLimit({ rate: '1/min', name: 'page' })
  page() {
    return 'ok';
  }
}

@Module({ imports: [RateLimitModule.forRoot()], controllers: [PageController] })
export class SwaggerModule {}
