import { applyDecorators, Controller, Get, Module, type INestApplication } from '@nestjs/common';
import { ApiOkResponse, ApiResponse, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { RateLimit, RateLimitModule } from 'nestjs-weir';

/** The 429 of this library as OpenAPI has it. */
export const TOO_MANY_REQUESTS = {
  status: 429,
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

/** Limits a route, and says so in its documentation. */
export const Limited = (policy: string) =>
  applyDecorators(RateLimit(policy), ApiResponse(TOO_MANY_REQUESTS));

@Controller()
class PagesController {
  @Get()
  @Limited('page')
  @ApiOkResponse({ type: String }) // Swagger leaves its own 200 out where another response is named.
  page() {
    return 'ok';
  }

  @Get('about')
  about() {
    return 'us';
  }
}

@Module({
  imports: [RateLimitModule.forRoot({ policies: { page: { rate: '1/min' } } })],
  controllers: [PagesController],
})
export class PagesModule {}

/** In main.ts, before listen(). */
export function setUpSwagger(app: INestApplication) {
  // Where `apply` limits every route: .addGlobalResponse(TOO_MANY_REQUESTS)
  const config = new DocumentBuilder().setTitle('Pages').build();
  SwaggerModule.setup('api', app, () => SwaggerModule.createDocument(app, config));
}
