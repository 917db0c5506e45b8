import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler';
import { type Contender, type ContenderOptions } from '../contender.js';
import { stage } from './stage.js';

export function createThrottlerGuard(options: ContenderOptions): Promise<Contender> {
  const { limit, periodMs: ttl, headers } = options;
  const setHeaders = headers !== false;
  return stage({
    metadata: {
      imports: [ThrottlerModule.forRoot({ throttlers: [{ limit, ttl }], setHeaders })],
      providers: [ThrottlerGuard],
    },
    decorate: undefined,
    guardOf: (app) => app.get(ThrottlerGuard),
    answers: 'later',
  });
}
