import { Body, Controller, HttpCode, Module, Post, UnauthorizedException } from '@nestjs/common';
import { RateLimit, RateLimiter, RateLimitModule } from 'nestjs-weir';

interface Credentials {
  readonly name: string;
  readonly password: string;
}

/** As the table of users compares names: else each spelling of a name has guesses of its own. */
const nameIn = (body?: Partial<Credentials>): string =>
  String(body?.name ?? '')
    .trim()
    .toLowerCase();

@Controller()
class LoginController {
  constructor(private readonly limiter: RateLimiter) {}

  @Post('login')
  @HttpCode(200)
  @RateLimit('login-address')
  @RateLimit('login-name')
  async login(@Body() credentials: Credentials) {
    if (credentials.password !== 'right') throw new UnauthorizedException(); // your check
    const name = nameIn(credentials);
    // A caller who knows the password has not been guessing.
    await this.limiter.reset({ policy: 'login-name', key: name });
    return { welcome: name };
  }
}

@Module({
  imports: [
    RateLimitModule.forRoot({
      policies: {
        // One address that tries many names.
        'login-address': { algorithm: 'sliding-window', rate: '20/h', key: 'ip' },
        // Many addresses that try one name. Requests without a name share one bucket.
        'login-name': {
          algorithm: 'sliding-window',
          rate: '5/15m',
          key: (context) =>
            nameIn(context.switchToHttp().getRequest<{ body?: Credentials }>().body),
        },
      },
    }),
  ],
  controllers: [LoginController],
})
export class LoginModule {}
