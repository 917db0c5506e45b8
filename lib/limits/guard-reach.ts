import { type CanActivate } from '@nestjs/common';
import { type Observable } from 'rxjs';

/**
 * Whether the global guard reaches the handlers of all microservices that are connected, as it does with
 * `inheritAppConfig: true`. Nest tells nobody; but it looks at a guard for each handler that it puts it before,
 * and does so for those of messages as soon as there is a server for them.
 */
export class GuardReach {
  private looks = 0;
  private servers = 0;
  private reached = 0;
  /** Judges the last server. */
  private judge = (): void => {};

  /** `started` emits the servers of all microservices of the application. */
  constructor(
    private readonly guard: CanActivate,
    started: Observable<unknown>,
  ) {
    const get = (): unknown => {
      this.looks++;
      return Reflect.get(Object.getPrototypeOf(guard) as object, 'canActivate');
    };
    Object.defineProperty(guard, 'canActivate', { configurable: true, get });
    started.subscribe(() => this.began());
  }

  /** Asked once, when the application is initialised: from then on each look is a request. */
  reachesAll(): boolean {
    delete (this.guard as Partial<CanActivate>).canActivate;
    return this.servers > 0 && this.reached === this.servers;
  }

  /** Its handlers are bound before this turn is over, or the next server begins. */
  private began(): void {
    this.judge();
    const { looks } = this;
    const judge = (this.judge = (): void => {
      this.judge = () => {};
      if (this.looks > looks) this.reached++;
    });
    this.servers++;
    queueMicrotask(() => {
      if (this.judge === judge) judge();
    });
  }
}
