import { type TierRequest } from '../../requests/tier.js';
import { HttpException, type ArgumentsHost, type ExecutionContext } from '@nestjs/common';
import { of, throwError, type Observable } from 'rxjs';
import { type Decision } from '../../limiter/decision.js';
import { RequestCounts } from '../../requests/request-counts.js';
import {
  RateLimitedException,
  RefusedException,
  type RefusedBody,
  type UnansweredBody,
  type UnavailableBody,
} from '../../requests/rejections.js';
import {
  CallerGone,
  type HeaderNames,
  type RouteFacts,
  type Substitutes,
  type Transport,
  type WaitPolicy,
} from '../../requests/transport.js';
import { elementOf, ownValueAt } from '../shared/requests.js';
import { isServerFault, PayloadSubstitutes } from '../shared/substitutes.js';
import { type DroppedEvents } from './dropped-events.js';
import { type KafkaWaiting } from './kafka-waiting.js';
import {
  isEventHandler,
  isKafka,
  isRmq,
  messageContextOf,
  messageHeaderNames,
  messageHeaderOf,
  messageHeaders,
  patternOf,
  socketOf,
  topicOf,
  wantsNoReply,
  type PeerSocket,
} from './message-context.js';
import { type EventPatterns } from './event-patterns.js';
import { type RmqReceipts } from './rmq-receipts.js';

/** The answer of Nest to errors that are not for callers. */
const FAILED = { status: 'error', message: 'Internal server error' };

/** An event was denied; its filter has no caller to answer. */
class DeniedEvent extends RateLimitedException {
  constructor(
    decision: Decision,
    readonly handler: string,
  ) {
    super(decision);
  }
}

/** The same of an event that asks for the impossible. */
class RefusedEvent extends RefusedException {
  constructor(
    body: RefusedBody,
    readonly handler: string,
  ) {
    super(body);
  }
}

/** Messages and events of TCP, Redis, NATS, MQTT, RabbitMQ and Kafka. */
export class MessageTransport implements Transport {
  readonly counts = new RequestCounts();
  readonly substitutes: Substitutes = new MessageSubstitutes();
  private readonly hangUps = new HangUps();

  constructor(
    private readonly dropped: DroppedEvents,
    private readonly receipts: RmqReceipts,
    private readonly events: EventPatterns,
    private readonly kafka: KafkaWaiting,
  ) {}

  addressOf(context: ExecutionContext): string | undefined {
    const socket = socketOf(messageContextOf(context));
    const address = socket?.remoteAddress;
    // Events of a peer that has hung up right after them are still to be handled.
    if (address === undefined && socket?.destroyed === true && !this.isOneWay(context)) {
      throw new CallerGone();
    }
    return address;
  }

  headerOf(context: ExecutionContext, name: string): string | undefined {
    return messageHeaderOf(messageContextOf(context), name);
  }

  /** The user that a guard has put into the context goes before the one in the message. */
  userOf(context: ExecutionContext): unknown {
    return messageContextOf(context).user ?? this.valueAt(context, ['user']);
  }

  valueAt(context: ExecutionContext, path: readonly string[]): unknown {
    return ownValueAt(context.getArgByIndex<unknown>(0), path);
  }

  elementAt(context: ExecutionContext, index: number): unknown {
    return elementOf(context.getArgByIndex<unknown>(0), index);
  }

  methodOf(context: ExecutionContext): string {
    return patternOf(context.getHandler(), topicOf(messageContextOf(context)));
  }

  rawRequestOf(context: ExecutionContext): TierRequest {
    const pattern = this.methodOf(context);
    const headers = messageHeaders(messageContextOf(context));
    return { transport: 'rpc', method: pattern, path: pattern, headers };
  }

  entersLine(): boolean {
    return true;
  }

  decided(context: ExecutionContext, decision: Decision): void {
    if (!decision.allowed) this.acknowledge(context);
  }

  rejection(
    context: ExecutionContext,
    decision: Decision,
    { id }: RouteFacts,
  ): RateLimitedException {
    // Nothing was decided before the line refused it.
    if (decision.tier === 'node') this.acknowledge(context);
    return this.isOneWay(context)
      ? new DeniedEvent(decision, id)
      : new RateLimitedException(decision);
  }

  badRequest(context: ExecutionContext, body: RefusedBody, { id }: RouteFacts): Error {
    this.acknowledge(context);
    return this.isOneWay(context) ? new RefusedEvent(body, id) : new RefusedException(body);
  }

  private acknowledge(context: ExecutionContext): void {
    const message = messageContextOf(context);
    if (isRmq(message)) this.receipts.give(message, this.isOneWay(context));
  }

  isOneWay(context: ExecutionContext): boolean {
    return isEventHandler(context.getHandler()) || wantsNoReply(messageContextOf(context)) === true;
  }

  /**
   * A request gets its error. An event ends like one that was handled, and with a value: Kafka
   * takes an error, or no value at all, for a reason to deliver the event again and again.
   */
  answer(
    exception: RateLimitedException | RefusedException,
    host: ArgumentsHost,
  ): Observable<unknown> {
    if (exception instanceof DeniedEvent || exception instanceof RefusedEvent) {
      this.dropped.add(exception.handler);
      return of(undefined);
    }
    // Thrown by the application itself.
    if (wantsNoReply(messageContextOf(host)) === true) return of(undefined);
    return throwError(() => exception.body);
  }

  /** An event ends as it does with any other error, with Kafka in another delivery: its work has not been done. */
  turnAway(body: UnavailableBody, host: ArgumentsHost): Observable<unknown> {
    return throwError(() => (this.isEvent(host) ? FAILED : body));
  }

  /** Undefined where events may not wait at all, and for everything that is no event of Kafka. */
  waitPolicyOf(context: ExecutionContext, isLimitShared: boolean): WaitPolicy | undefined {
    const message = messageContextOf(context);
    if (!isKafka(message) || !this.isOneWay(context)) return undefined;
    return this.kafka.of(message, isLimitShared);
  }

  /** The sender of an event may well hang up right after it. */
  whenAborted(context: ExecutionContext, callback: () => void): () => void {
    const socket = socketOf(messageContextOf(context));
    if (socket === undefined || this.isOneWay(context)) return () => undefined;
    return this.hangUps.listen(socket, callback);
  }

  private isEvent(host: ArgumentsHost): boolean {
    const message = messageContextOf(host);
    const pattern = topicOf(message);
    return wantsNoReply(message) ?? (pattern !== undefined && this.events.has(pattern));
  }
}

/** Messages that want an answer, answered in the place of their handler. */
class MessageSubstitutes extends PayloadSubstitutes {
  /** Nobody would read the answer; and Kafka takes an error for a wish to see the message again. */
  takes(host: ArgumentsHost): boolean {
    return wantsNoReply(messageContextOf(host)) !== true;
  }

  hasCredentials(context: ExecutionContext, known: HeaderNames): boolean {
    return messageHeaderNames(messageContextOf(context)).some((name) => known.has(name));
  }

  /** The user that a guard has found. A sender may call itself anything. */
  trustedUserOf(context: ExecutionContext): unknown {
    return messageContextOf(context).user;
  }

  varyingHeaderOf(context: ExecutionContext, name: string): string | undefined {
    return messageHeaderOf(messageContextOf(context), name);
  }

  protected callOf(context: ExecutionContext): object {
    return messageContextOf(context);
  }

  protected placeOf(context: ExecutionContext): string | undefined {
    return topicOf(messageContextOf(context));
  }

  /** A broker does not show who has gone; and a request over TCP may as well be finished. */
  isAborted(): boolean {
    return false;
  }

  isFailure(error: unknown): boolean {
    if (error instanceof HttpException) return isServerFault(error);
    const { getError } = error as { getError?: () => unknown };
    const status = typeof getError === 'function' ? getError.call(error) : undefined;
    const { statusCode } = (status ?? {}) as { statusCode?: unknown };
    return typeof statusCode !== 'number' || statusCode >= 500;
  }

  /** There is no place for it but in the answer itself: see `field`. */
  mark(): void {}

  answerWithout(body: UnansweredBody): Observable<unknown> {
    return throwError(() => body);
  }
}

/** Tells when a peer hangs up. One listener for each socket, however many of its messages wait. */
export class HangUps {
  private readonly listeners = new WeakMap<PeerSocket, Set<() => void>>();

  listen(socket: PeerSocket, callback: () => void): () => void {
    let callbacks = this.listeners.get(socket);
    if (callbacks === undefined) {
      const all = (callbacks = new Set());
      this.listeners.set(socket, all);
      socket.on('close', () => {
        for (const one of [...all]) one();
      });
    }
    callbacks.add(callback);
    return () => callbacks.delete(callback);
  }
}
