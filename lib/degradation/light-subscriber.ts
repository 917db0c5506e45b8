import { type Subscriber, type TeardownLogic, type Unsubscribable } from 'rxjs';

/**
 * A subscriber for rxjs, which goes by its methods: so subscribers of another copy of rxjs are taken,
 * too. It knows its teardowns, but they do not know it; to keep both ends of every link is half of what
 * a subscriber costs.
 */
export abstract class LightSubscriber implements Unsubscribable {
  closed = false;
  protected isStopped = false;
  private teardowns: TeardownLogic[] | undefined = undefined;

  next(value: unknown): void {
    if (!this.isStopped) this.heard(value);
  }

  error(error: unknown): void {
    if (this.isStopped) return;
    this.isStopped = true;
    this.failed(error);
  }

  complete(): void {
    if (this.isStopped) return;
    this.isStopped = true;
    this.completed();
  }

  add(teardown: TeardownLogic): void {
    if (teardown === undefined || teardown === this) return;
    if (this.closed) end(teardown);
    else if (this.teardowns === undefined) this.teardowns = [teardown];
    else this.teardowns.push(teardown);
  }

  remove(teardown: Exclude<TeardownLogic, void>): void {
    this.teardowns = this.teardowns?.filter((one) => one !== teardown);
  }

  unsubscribe(): void {
    if (this.closed) return;
    this.closed = true;
    this.isStopped = true;
    const { teardowns } = this;
    this.teardowns = undefined;
    if (teardowns !== undefined) for (const one of teardowns) end(one);
  }

  /** As rxjs calls it. */
  asSubscriber(): Subscriber<unknown> {
    return this as unknown as Subscriber<unknown>;
  }

  protected abstract heard(value: unknown): void;
  protected abstract failed(error: unknown): void;
  protected abstract completed(): void;
}

function end(teardown: TeardownLogic): void {
  if (typeof teardown === 'function') teardown();
  else teardown?.unsubscribe();
}
