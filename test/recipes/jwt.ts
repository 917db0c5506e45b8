import {
  Controller,
  Get,
  Injectable,
  Module,
  SetMetadata,
  UnauthorizedException,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { APP_GUARD, Reflector } from '@nestjs/core';
import { RateLimitModule, SkipRateLimit } from 'nestjs-weir';

const Public = () => SetMetadata('public', true);

/**
 * In your application: `class JwtAuthGuard extends AuthGuard('jwt')` of @nestjs/passport, with the
 * same canActivate around `super.canActivate(context)`. What counts is that it sets request.user.
 */
@Injectable()
export class JwtAuthGuard implements CanActivate {
  constructor(private readonly reflector: Reflector) {}

  canActivate(context: ExecutionContext): boolean {
    if (this.reflector.getAllAndOverride('public', [context.getHandler(), context.getClass()])) {
      return true;
    }
    const request = context
      .switchToHttp()
      .getRequest<{ headers: { authorization?: string }; user?: { sub: string } }>();
    const sub = /^Bearer (\w+)$/.exec(request.headers.authorization ?? '')?.[1];
    if (sub === undefined) throw new UnauthorizedException();
    request.user = { sub };
    return true;
  }
}

@Controller()
class AccountController {
  @Get('account')
  account() {
    return 'yours';
  }

  @Get('health')
  @Public()
  @SkipRateLimit()
  health() {
    return 'fine';
  }
}

@Module({
  imports: [
    RateLimitModule.forRoot({
      policies: {
        // Counted where authentication refuses, before it has done any work.
        address: { rate: '300/min', key: 'ip', early: true },
        user: { rate: '2/min', key: 'user' },
      },
      apply: ['address', 'user'],
    }),
  ],
  controllers: [AccountController],
  // Guards of the root module run before those of modules that it imports: authentication comes first.
  providers: [{ provide: APP_GUARD, useClass: JwtAuthGuard }],
})
export class JwtModule {}
