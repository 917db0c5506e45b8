import { type INestApplication, type Type } from '@nestjs/common';
import { Degradation, RateLimitModule, type RateLimitModuleInput } from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import {
  startHttpWire,
  type HttpQuestion,
  type HttpWire,
  type HttpWireName,
} from '../support/nest/http-wires.js';

/** Handlers that have their answers while they are not down. */
export class Handlers {
  isDown = false;

  answer<T>(answer: T): T {
    if (this.isDown) throw new Error('down');
    return answer;
  }
}

export interface AnyRequest {
  readonly headers: Record<string, string | undefined>;
  readonly body?: unknown;
}

export const clock = new ManualClock();

/** Long enough for what was kept to be old. */
export const forgetAll = (): void => clock.advance(60 * 60_000);

export const limits = (more: RateLimitModuleInput = {}) =>
  RateLimitModule.forRoot({ clock, ...more });

/** A server by one of the wires of HTTP, as a caller sees it. */
export class AttackedServer {
  private constructor(
    private readonly wire: HttpWire,
    private readonly handlers: Handlers,
  ) {}

  static async start(
    wire: HttpWireName,
    controller: Type,
    handlers: Handlers,
    options: RateLimitModuleInput = {},
    prepare?: (app: INestApplication) => void,
  ): Promise<AttackedServer> {
    const metadata = { imports: [limits(options)], controllers: [controller] };
    return new AttackedServer(await startHttpWire(wire, metadata, prepare), handlers);
  }

  readonly ask = (path: string, question?: HttpQuestion) => this.wire.ask(path, question);

  readonly whenDown = (path: string, question?: HttpQuestion) => {
    this.handlers.isDown = true;
    return this.wire.ask(path, question);
  };

  /** Answers that are kept. */
  readonly stored = (): number => this.wire.app.get(Degradation).stats().caches.stored;

  close(): Promise<void> {
    return this.wire.close();
  }
}
