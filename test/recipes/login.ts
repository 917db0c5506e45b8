import { Body, Controller, HttpCode, Module, Post, UnauthorizedException } from '@nestjs/common';
import { RateLimit, RateLimiter, RateLimitModule } from 'nestjs-weir';

interface Credentials {
  readonly name: string;
  readonly password: string;
}

@Controller()
class LoginController {
  constructor(private readonly limiter: RateLimiter) {}

  @Post('login')
  @HttpCode(200)
  @RateLimit('login-address')
  @RateLimit('login-name')
  async login(@Body() { name, password }: Credentials) {
    if (password !== 'right') throw new UnauthorizedException(); // your check
    // Whoever knows the password has not been guessing.
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
        'login-name': { algorithm: 'sliding-window', rate: '5/15m', key: { param: 'body.name' } },
      },
    }),
  ],
  controllers: [LoginController],
})
export class LoginModule {}
