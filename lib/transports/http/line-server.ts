import { AsyncResource } from 'node:async_hooks';
import { type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type Clock } from '../../common/clock.js';
import { type DegradeRoutes } from '../../degradation/degrade-routes.js';
import { keepCharge, NOTHING_CHARGED } from '../../limits/charges.js';
import { HalfSlice, type RefusedRequest } from '../../overload/half-slice.js';
import { type LineWaiter } from '../../overload/line.js';
import { type OverloadLog } from '../../overload/overload.log.js';
import { type Overload } from '../../overload/overload.js';
import { PASSES } from '../../overload/tiers.js';
import { RateLimitedException, refusalByLine } from '../../requests/rejections.js';
import { httpSubjectOf } from '../../requests/subject.js';
import { type TierRequest } from '../../requests/tier.js';
import { waitSeconds } from '../shared/requests.js';
import { Refusals } from './refusal.js';

/** A listener that Node calls with a request. */
type ServerListener = (request: IncomingMessage, response: ServerResponse) => void;

/** The part of Fastify that a hook needs. */
export interface FastifyHooks {
  addHook(
    name: 'onRequest',
    hook: (
      request: { readonly raw: IncomingMessage },
      reply: { readonly raw: ServerResponse; hijack(): unknown },
      done: () => void,
    ) => void,
  ): unknown;
}

/** The adapter of an application, as far as the line needs it. */
export interface ServerAdapter {
  getHttpServer(): Server | undefined;
  getInstance(): unknown;
  getType(): string;
}

/**
 * The line at an HTTP server. It takes the place of the server's listeners, before body parsers, hooks and
 * guards, and calls them in turn: a request that is refused there costs a fraction of one that a guard
 * refuses. A server whose line was never switched on is not touched.
 */
export class LineServer {
  private server: Server | undefined;
  private listeners: readonly ServerListener[] = [];
  private refusals: Refusals;
  private readonly halfSlice: HalfSlice;

  constructor(
    private readonly overload: Overload,
    private readonly log: Pick<OverloadLog, 'once'>,
    private readonly problemBase: string,
    private readonly routes: Pick<DegradeRoutes, 'kept' | 'mayBeElsewhere'>,
    clock: Pick<Clock, 'now' | 'soon'>,
  ) {
    this.refusals = new Refusals(overload.settings, problemBase);
    // Applications warm their caches while they start.
    if (overload.isOn) routes.kept.remember();
    this.halfSlice = new HalfSlice(
      () => overload.settings.line.sliceMicros,
      clock,
      (task) => void clock.soon(task),
    );
  }

  /** From now on whenever the line is switched on, also while the server runs. */
  standAt(adapter: ServerAdapter): void {
    const server = adapter.getHttpServer();
    if (server === undefined) return;
    this.overload.whenChanged((settings) => {
      this.refusals = new Refusals(settings, this.problemBase);
      if (this.overload.isOn && this.server === undefined) this.mount(server, adapter);
    });
  }

  /** Runs the listeners that the server had. */
  serve(request: IncomingMessage, response: ServerResponse): void {
    const { listeners, server } = this;
    for (let i = 0; i < listeners.length; i++) listeners[i]!.call(server, request, response);
  }

  /** Counts a request that runs until its answer is sent, or its caller has gone. */
  track(request: IncomingMessage, response: ServerResponse): void {
    if (isStream(request)) return;
    this.overload.line.started();
    response.on('close', this.ended);
  }

  refuse(request: IncomingMessage, response: ServerResponse): void {
    this.refusals.send(request, response);
  }

  /** Whether `@Degrade` has an answer for it, here or maybe in another process. */
  private mayBeKept({ method, url = '' }: IncomingMessage): boolean {
    if (method !== 'GET') return false;
    const { routes, halfSlice } = this;
    return routes.kept.has(url) || (halfSlice.canTry && routes.mayBeElsewhere(url));
  }

  /** True if it may still get the answer that `@Degrade` has kept for it. */
  takes(request: IncomingMessage, one: RefusedRequest): boolean {
    if (!this.mayBeKept(request)) return false;
    return this.halfSlice.enter(one, !this.routes.kept.has(request.url!));
  }

  /** It goes its way to the interceptor of `@Degrade`, and no limit asks for it. */
  handOver(request: IncomingMessage, response: ServerResponse): void {
    const decision = refusalByLine(this.overload.retryAfterMs());
    const rejection = (): Error => {
      response.setHeader('Retry-After', waitSeconds(decision.retryAfterMs));
      response.setHeader('Cache-Control', 'no-store');
      return new RateLimitedException(decision);
    };
    const handedOver = { decision, rejection, isByLine: true };
    keepCharge(httpSubjectOf(request), { ...NOTHING_CHARGED, decision, handedOver });
  }

  private readonly ended = (): void => this.overload.line.ended();

  private mount(server: Server, adapter: ServerAdapter): void {
    this.server = server;
    this.listeners = server.listeners('request') as ServerListener[];
    server.removeAllListeners('request');
    server.on('request', (request, response) => this.enter(request, response, this.served));
    this.mountContinue(server);
    this.routes.kept.remember();
    server.on('connection', () => {
      if (this.overload.isOn) this.overload.line.connected();
    });
    // The first listener for upgrades would change what Node does with them.
    if (server.listenerCount('upgrade') > 0) {
      server.on('upgrade', () => void this.overload.upgrades++);
    }
    server.on('newListener', (event: string | symbol) => {
      if (event === 'request') this.log.once('listener', LATER_LISTENER);
    });
    if (adapter.getType() === 'fastify') this.mountHook(adapter.getInstance() as FastifyHooks);
  }

  private readonly served: ServerListener = (request, response) => this.serve(request, response);

  /** A caller that asks before it sends its body is refused before it has sent it. */
  private mountContinue(server: Server): void {
    const own = server.listeners('checkContinue') as ServerListener[];
    server.removeAllListeners('checkContinue');
    const go: ServerListener = (request, response) => {
      if (own.length > 0) for (const listener of own) listener.call(server, request, response);
      else {
        response.writeContinue();
        this.serve(request, response);
      }
    };
    server.on('checkContinue', (request, response) => this.enter(request, response, go));
  }

  /** Where `localhost` has two addresses Fastify has a second server, and tests need none at all. */
  private mountHook(fastify: FastifyHooks): void {
    try {
      fastify.addHook('onRequest', (request, reply, done) => {
        const { socket } = request.raw as { socket?: { server?: unknown } };
        if (socket?.server === this.server) return done();
        this.enter(
          request.raw,
          reply.raw,
          () => done(),
          () => void reply.hijack(),
        );
      });
    } catch {
      // The line was switched on when Fastify had started: its second server stays without.
    }
  }

  private enter(
    request: IncomingMessage,
    response: ServerResponse,
    go: ServerListener,
    beforeRefusal?: () => void,
  ): void {
    const { overload } = this;
    if (!overload.isOn) return go(request, response);
    const tier = this.tierOf(request);
    if (tier === PASSES) {
      overload.exempt++;
      return go(request, response);
    }
    const { line } = overload;
    if (!line.tryBegin(tier)) {
      const isFull = line.countIfFull(tier);
      // Most of those that are refused cost nothing beside their answer.
      if (isFull && beforeRefusal === undefined && !this.mayBeKept(request)) {
        return this.refuse(request, response);
      }
      const waiting = new WaitingRequest(this, request, response, tier, go, beforeRefusal);
      return isFull ? waiting.refuse() : line.wait(waiting);
    }
    this.track(request, response);
    go(request, response);
    line.ran();
  }

  private tierOf(request: IncomingMessage): number {
    const { tiers } = this.overload;
    const { method = '', url = '' } = request;
    const query = url.indexOf('?');
    const path = query < 0 ? url : url.slice(0, query);
    if (tiers.isPlain) return tiers.isExemptPath(method, path) ? PASSES : 0;
    return tiers.tierOf(new RawHttpRequest(request, method, path));
  }
}

/** Node makes an object of the headers when they are asked for first, which a resolver by path does not. */
class RawHttpRequest implements TierRequest {
  readonly transport = 'http';

  constructor(
    private readonly request: IncomingMessage,
    readonly method: string,
    readonly path: string,
  ) {}

  get headers(): IncomingMessage['headers'] {
    return this.request.headers;
  }
}

const LATER_LISTENER =
  "A listener for 'request' was added to the HTTP server after the line: it runs for every request, also for those that are refused";

/** Runs in the context that its request came with, whoever was before it in the line. */
class WaitingRequest extends AsyncResource implements LineWaiter, RefusedRequest {
  constructor(
    private readonly server: LineServer,
    private readonly request: IncomingMessage,
    private readonly response: ServerResponse,
    readonly tier: number,
    private readonly go: ServerListener,
    private readonly beforeRefusal: (() => void) | undefined,
  ) {
    super('WeirLine');
  }

  run(): void {
    const { server, request, response, go } = this;
    server.track(request, response);
    this.runInAsyncScope(go, undefined, request, response);
  }

  refuse(): void {
    // A hook of Fastify has begun with it.
    if (this.beforeRefusal === undefined && this.server.takes(this.request, this)) return;
    this.turnAway();
  }

  answer(): void {
    this.server.handOver(this.request, this.response);
    this.run();
  }

  turnAway(): void {
    this.beforeRefusal?.();
    this.server.refuse(this.request, this.response);
  }

  isGone(): boolean {
    const { request, response } = this;
    return response.destroyed || request.socket?.destroyed === true;
  }
}

/** True for Server-Sent Events, which last as long as their reader likes. */
function isStream({ rawHeaders }: IncomingMessage): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length === 6 && name.toLowerCase() === 'accept') {
      return rawHeaders[i + 1]!.includes('text/event-stream');
    }
  }
  return false;
}
