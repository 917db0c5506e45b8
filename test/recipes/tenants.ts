import { Controller, Get, Module, type ExecutionContext } from '@nestjs/common';
import { RateLimit, RateLimitModule } from 'nestjs-weir';

const PLANS = new Map([
  ['acme', 'business'],
  ['bolt', 'starter'],
]);

/** `acme.example.com` is the tenant acme. */
function tenantOf(context: ExecutionContext): string | undefined {
  const { headers } = context.switchToHttp().getRequest<{ headers: { host?: string } }>();
  return headers.host?.split('.')[0];
}

@Controller()
class OrdersController {
  @Get('orders')
  @RateLimit('tenant')
  @RateLimit('tenant-user')
  orders() {
    return [];
  }
}

@Module({
  imports: [
    RateLimitModule.forRoot({
      policies: {
        // The plan that a tenant has paid for, over all its users.
        tenant: {
          tiers: { business: '4/min', starter: '2/min' },
          defaultTier: 'starter',
          key: tenantOf,
          tier: (context) => PLANS.get(tenantOf(context) ?? ''),
        },
        // One user does not use up what all users of the tenant have.
        'tenant-user': { rate: '3/min', key: [tenantOf, { header: 'x-user' }] },
      },
    }),
  ],
  controllers: [OrdersController],
})
export class TenantsModule {}
