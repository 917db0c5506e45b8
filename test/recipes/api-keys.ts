import {
  Controller,
  Get,
  Injectable,
  Module,
  UnauthorizedException,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { RateLimit, RateLimitModule, type LimitOptions } from 'nestjs-weir';

interface Customer {
  readonly id: string;
  readonly limit: LimitOptions;
}

/** A table of yours; the columns of a plan are the figures of a limit. */
@Injectable()
export class Customers {
  private readonly rows = new Map<string, Customer>([
    ['key-of-acme', { id: 'acme', limit: { rate: 3, period: '1m' } }],
    ['key-of-bolt', { id: 'bolt', limit: { rate: 1, period: '1m' } }],
  ]);

  byKey(key: string | undefined): Promise<Customer | undefined> {
    return Promise.resolve(this.rows.get(key ?? ''));
  }
}

interface KeyRequest {
  readonly headers: Record<string, string | undefined>;
  user?: Customer;
}

@Injectable()
export class ApiKeyGuard implements CanActivate {
  constructor(private readonly customers: Customers) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<KeyRequest>();
    request.user = await this.customers.byKey(request.headers['x-api-key']);
    if (request.user === undefined) throw new UnauthorizedException();
    return true;
  }
}

@Controller()
class ReportsController {
  @Get('reports')
  @RateLimit('address') // before all guards
  @RateLimit('plan') // above the guard, which runs first
  @UseGuards(ApiKeyGuard)
  reports() {
    return [];
  }
}

@Module({
  imports: [
    RateLimitModule.forRoot({
      policies: {
        // Keys that nobody has: each would ask the database, without a limit.
        address: { rate: '60/min', key: 'ip', early: true },
        plan: {
          rate: '1/min', // of a customer whose plan says nothing
          key: 'user', // customer.id, not the secret
          tier: (context) => context.switchToHttp().getRequest<KeyRequest>().user?.limit,
        },
      },
    }),
  ],
  controllers: [ReportsController],
  providers: [Customers, ApiKeyGuard],
})
export class ApiKeysModule {}
