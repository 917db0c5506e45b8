import { Injectable, type ExecutionContext } from '@nestjs/common';
import { RateLimitGuard } from './rate-limit.guard.js';

// Guards of the application run before those of a class, and these before those of a method. Who
// calls may be found out in between: as long as it is not known, each leaves policies by user to
// the one that they stand at. Once it is, all are asked together, and it is all or nothing again.

/** The guard of a class. */
@Injectable()
export class ClassRateLimitGuard extends RateLimitGuard {
  override canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    return this.checkPart(this.planOf(context), 'ofClass', context);
  }
}

/** The guard of the whole application. */
@Injectable()
export class AppRateLimitGuard extends RateLimitGuard {
  override canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    return this.checkPart(this.planOf(context), 'ofApp', context);
  }
}
