import { RateLimit, RateLimiter, RateLimitGuard, RateLimitModule } from 'nestjs-weir';
import { type Contender, type ContenderOptions } from '../contender.js';
import { stage } from './stage.js';

export function createWeirGuard(options: ContenderOptions): Promise<Contender> {
  const { limit, periodMs, headers } = options;
  const module = RateLimitModule.forRoot({
    policies: { api: { rate: limit, period: periodMs } },
    headers: { draft: headers === false ? 'off' : 'draft-10' },
  });
  return stage({
    metadata: { imports: [module] },
    decorate: RateLimit('api'),
    guardOf: (app) => app.get(RateLimitGuard),
    answers: 'at once',
    decided: (app) => app.get(RateLimiter).stats().policies.api!.allowed,
  });
}
