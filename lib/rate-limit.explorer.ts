import { Logger, type OnModuleInit } from '@nestjs/common';
import { type DiscoveryService, type HttpAdapterHost, type MetadataScanner } from '@nestjs/core';
import { entriesOf, skipOf, type RouteTable } from './guards/index.js';

/** A function; its own type says nothing about how it is called. */
type Handler = object & { readonly name: string };
type Class = abstract new (...args: never[]) => unknown;

/** Where Nest keeps what a handler of messages listens to. */
const MESSAGE_PATTERN = 'microservices:pattern';

/** Makes the plan of every limited handler at start, so that what is wrong with one is known then. */
export class RateLimitExplorer implements OnModuleInit {
  private readonly logger = new Logger('RateLimitModule');

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly scanner: MetadataScanner,
    private readonly routes: RouteTable,
    private readonly appliesToAll: boolean,
    private readonly adapterHost: HttpAdapterHost | undefined,
  ) {}

  onModuleInit(): void {
    this.routes.checkApplied();
    const unnamed: string[] = [];
    for (const [type, handler, name] of this.handlers()) {
      const isLimited = entriesOf(type).length + entriesOf(handler).length > 0;
      const isSkipped = (skipOf(type) ?? skipOf(handler)) !== undefined;
      if (isLimited || isSkipped) this.routes.planOf(type, handler);
      else if (Reflect.hasMetadata(MESSAGE_PATTERN, handler)) unnamed.push(`${type.name}.${name}`);
    }
    this.warnOfHybrid(unnamed);
  }

  /** A global guard does not reach a microservice that was connected without its configuration. */
  private warnOfHybrid(messageHandlers: readonly string[]): void {
    const isHttp = this.adapterHost?.httpAdapter !== undefined;
    if (!this.appliesToAll || !isHttp || messageHandlers.length === 0) return;
    this.logger.warn(
      `'apply' reaches ${messageHandlers.join(', ')} only if the microservice is connected with ` +
        'connectMicroservice(options, { inheritAppConfig: true }); or put @RateLimit() on them.',
    );
  }

  private *handlers(): Iterable<[Class, Handler, string]> {
    const wrappers = [...this.discovery.getControllers(), ...this.discovery.getProviders()];
    const seen = new Set<Class>();
    for (const { metatype, instance } of wrappers) {
      const type = metatype as Class | null;
      if (typeof type !== 'function' || type.prototype === undefined || seen.has(type)) continue;
      if (!(instance instanceof type)) continue;
      seen.add(type);
      const prototype = type.prototype as Record<string, unknown>;
      for (const name of this.scanner.getAllMethodNames(prototype)) {
        const handler = prototype[name];
        if (typeof handler === 'function') yield [type, handler, name];
      }
    }
  }
}
