import {
  Controller,
  Get,
  Injectable,
  Module,
  SetMetadata,
  type ExecutionContext,
} from '@nestjs/common';
import { APP_GUARD, Reflector } from '@nestjs/core';
import { AuthGuard, PassportStrategy } from '@nestjs/passport';
import { RateLimitModule, SkipRateLimit } from 'nestjs-weir';
import { ExtractJwt, Strategy } from 'passport-jwt';

const Public = () => SetMetadata('public', true);

@Injectable()
class JwtStrategy extends PassportStrategy(Strategy) {
  constructor() {
    super({
      jwtFromRequest: ExtractJwt.fromAuthHeaderAsBearerToken(),
      secretOrKey: process.env['JWT_SECRET']!,
    });
  }

  /** The result becomes request.user, whose `id` or `sub` is the key. */
  validate({ sub, name }: { sub: string; name: string }) {
    return { id: sub, name };
  }
}

@Injectable()
class JwtAuthGuard extends AuthGuard('jwt') {
  constructor(private readonly reflector: Reflector) {
    super();
  }

  override canActivate(context: ExecutionContext) {
    const targets = [context.getHandler(), context.getClass()];
    const isPublic = this.reflector.getAllAndOverride<boolean>('public', targets);
    return isPublic || super.canActivate(context);
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
  providers: [JwtStrategy, { provide: APP_GUARD, useClass: JwtAuthGuard }],
})
export class JwtModule {}
