import {
  Controller,
  Get,
  Module,
  type CanActivate,
  type ExecutionContext,
  type INestApplication,
  type ModuleMetadata,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { type EventEmitter } from 'node:events';
import { get, type ClientRequest } from 'node:http';
import { type Contender } from '../contender.js';

/** A guard on a route of a real application, and what its route is decorated with. */
export interface Staging {
  readonly metadata: ModuleMetadata;
  readonly decorate: MethodDecorator | undefined;
  guardOf(app: INestApplication): CanActivate;
  readonly answers: Contender['answers'];
  /** Calls that the guard has decided on, if it can tell. */
  decided?(app: INestApplication): number;
}

/** Holds the first request, so that its context can be used as long as the guard is measured. */
class Catcher implements CanActivate {
  private catchIt: ((context: ExecutionContext) => void) | undefined;
  readonly caught = new Promise<ExecutionContext>((resolve) => (this.catchIt = resolve));

  canActivate(context: ExecutionContext): Promise<boolean> {
    this.catchIt?.(context);
    return new Promise(() => {});
  }
}

/**
 * The guard is called with contexts of one real request to Express. Each call gets a request object
 * and a list of raw headers of its own, because a guard may remember whom it has seen; what is in
 * them is the real one's. The response is one and the same. A guard that waits for its end sees it
 * end after the call, and pays for that and for what a server need not do: to take its listener off.
 */
export async function stage(staging: Staging): Promise<Contender<boolean>> {
  class StageController {
    measured(): string {
      return 'never reached';
    }
  }
  const descriptor = Object.getOwnPropertyDescriptor(StageController.prototype, 'measured')!;
  staging.decorate?.(StageController.prototype, 'measured', descriptor);
  Get()(StageController.prototype, 'measured', descriptor);
  Controller()(StageController);
  class StageModule {}
  Module({ ...staging.metadata, controllers: [StageController] })(StageModule);
  const app = await NestFactory.create(StageModule as Type, { logger: false });
  const catcher = new Catcher();
  app.useGlobalGuards(catcher);
  await app.listen(0, '127.0.0.1');
  const request = get(await app.getUrl());
  request.on('error', () => {});
  const context = await catcher.caught;
  const staged = new Staged(app, staging.guardOf(app), context, request, staging.answers);
  checkThatItDecides(staged, () => staging.decided?.(app));
  return staged;
}

/** A guard that takes every call for the same request would look faster than any. */
function checkThatItDecides(staged: Staged, decided: () => number | undefined): void {
  const before = decided();
  if (before === undefined) return;
  for (let i = 0; i < 3; i++) void staged.decide();
  const count = decided()! - before;
  if (count !== 3) throw new Error(`the guard has decided on ${count} of 3 calls`);
}

class Staged implements Contender<boolean> {
  private readonly request: { readonly rawHeaders: readonly string[] };
  private readonly response: EventEmitter;
  private readonly handler: ReturnType<ExecutionContext['getHandler']>;
  private readonly type: Type;

  constructor(
    private readonly app: INestApplication,
    private readonly guard: CanActivate,
    context: ExecutionContext,
    private readonly client: ClientRequest,
    readonly answers: Contender['answers'],
  ) {
    this.request = context.getArgByIndex(0);
    this.response = context.getArgByIndex(1);
    // Node's own listener would let go of the connection.
    this.response.removeAllListeners('finish');
    this.handler = context.getHandler();
    this.type = context.getClass();
  }

  decide(): boolean | Promise<boolean> {
    const request = Object.create(this.request) as { rawHeaders: readonly string[] };
    request.rawHeaders = this.request.rawHeaders.slice();
    const args = [request, this.response];
    const context = new ExecutionContextHost(args, this.type, this.handler);
    context.setType('http');
    const answer = this.guard.canActivate(context) as boolean | Promise<boolean>;
    if (this.response.listenerCount('finish') > 0) this.finish();
    return answer;
  }

  allowed(passed: boolean): boolean {
    return passed;
  }

  private finish(): void {
    this.response.emit('finish');
    this.response.removeAllListeners('finish');
  }

  async close(): Promise<void> {
    this.client.destroy();
    await this.app.close();
  }
}
