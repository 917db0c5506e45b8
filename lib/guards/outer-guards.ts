import { Injectable, type ExecutionContext } from '@nestjs/common';
import { RateLimitGuard } from './rate-limit.guard.js';

// Guards of the application run before those of a class, and these before those of a method. Who
// calls may be found out in between, so each leaves policies by user to the one that they stand at.

/** The guard of a class. */
@Injectable()
export class ClassRateLimitGuard extends RateLimitGuard {
  override canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    return this.check(this.planOf(context).ofClass, context);
  }
}

/** The guard of the whole application. */
@Injectable()
export class AppRateLimitGuard extends RateLimitGuard {
  override canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    return this.check(this.planOf(context).ofApp, context);
  }
}
