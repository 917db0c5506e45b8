import { type ArgumentsHost } from '@nestjs/common';
import { isUtf8 } from 'node:buffer';
import { EVENT, HANDLER_TYPE, MESSAGE_PATTERN } from '../../requests/nest-metadata.js';

/** The socket below a TCP connection of Nest. */
export interface PeerSocket {
  readonly remoteAddress?: string;
  readonly destroyed?: boolean;
  on(event: 'close', listener: () => void): unknown;
}

export interface RmqMessage {
  readonly properties?: { readonly headers?: object; readonly replyTo?: unknown };
}

export interface RmqChannel {
  ack(message: unknown): void;
  nack(message: unknown, allUpTo: boolean, requeue: boolean): void;
}

/**
 * The context of a message in Nest, by its methods. Their classes are not looked at: that would need the
 * package of every broker.
 */
export interface MessageContext {
  readonly user?: unknown;
  /** TCP. */
  getSocketRef?(): { readonly netSocket?: PeerSocket } | undefined;
  /** TCP and RMQ. */
  getPattern?(): string;
  /** TCP and Redis, from Nest 12 on: what the sender wrote beside the data. */
  getMetadata?(): unknown;
  /** Redis. */
  getChannel?(): string;
  /** NATS. */
  getSubject?(): string;
  getHeaders?(): unknown;
  /** MQTT. */
  getPacket?(): { readonly properties?: { readonly userProperties?: object } } | undefined;
  /** MQTT and Kafka. */
  getTopic?(): string;
  /** RMQ and Kafka. */
  getMessage?(): (RmqMessage & { readonly headers?: object }) | undefined;
  /** RMQ. */
  getChannelRef?(): RmqChannel;
  /** Kafka. */
  getPartition?(): number;
  getHeartbeat?(): () => Promise<void>;
}

const NOTHING_KNOWN: MessageContext = {};

/** A transport of the application's own may give no context at all. */
export function messageContextOf(host: ArgumentsHost): MessageContext {
  return host.getArgByIndex<MessageContext | undefined>(1) ?? NOTHING_KNOWN;
}

/** The topic of a message, which brokers also call its subject, channel or pattern. */
export function topicOf(context: MessageContext): string | undefined {
  return (
    context.getPattern?.() ??
    context.getTopic?.() ??
    context.getSubject?.() ??
    context.getChannel?.()
  );
}

/** Only TCP has a peer; the sender of a message through a broker is far away behind it. */
export function socketOf(context: MessageContext): PeerSocket | undefined {
  return context.getSocketRef?.()?.netSocket;
}

export function isKafka(context: MessageContext): boolean {
  return context.getHeartbeat !== undefined;
}

export function isRmq(context: MessageContext): boolean {
  return context.getChannelRef !== undefined;
}

/** Whether the message itself wants no answer. Undefined where it does not show. */
export function wantsNoReply(context: MessageContext): boolean | undefined {
  const message = context.getMessage?.();
  if (isRmq(context)) return message?.properties?.replyTo === undefined;
  if (!isKafka(context)) return undefined;
  const { kafka_correlationId: id, kafka_replyTopic: topic } = (message?.headers ?? {}) as Record<
    string,
    unknown
  >;
  return !id || !topic;
}

const patterns = new WeakMap<object, readonly string[]>();

/** True for what `@EventPattern` stands on. */
export function isEventHandler(handler: object): boolean {
  return Reflect.getMetadata(HANDLER_TYPE, handler) === EVENT;
}

/**
 * The pattern that a handler was declared with. Not the topic of the message: with wildcards there
 * are as many of these as senders think of, and consumption is counted for each name.
 */
export function patternOf(handler: object, topic: string | undefined): string {
  let declared = patterns.get(handler);
  if (declared === undefined) patterns.set(handler, (declared = declaredPatterns(handler)));
  if (topic !== undefined && declared.includes(topic)) return topic;
  return declared[0] ?? 'message';
}

function declaredPatterns(handler: object): string[] {
  const declared = Reflect.getMetadata(MESSAGE_PATTERN, handler) as unknown[] | undefined;
  return (declared ?? []).map((pattern) =>
    typeof pattern === 'object' && pattern !== null && !(pattern instanceof RegExp)
      ? JSON.stringify(pattern)
      : String(pattern),
  );
}

/** Begins what is no text: decoded as one, different bytes would be the same. */
const NO_TEXT = '\0';

/** Headers of NATS, which are no plain object. */
interface HeaderTable {
  keys(): string[];
  get(name: string): string;
}

/** A header by its name in small letters; brokers keep the case of names, callers often do not. */
export function messageHeaderOf(context: MessageContext, name: string): string | undefined {
  const headers = headersOf(context);
  if (typeof headers !== 'object' || headers === null) return undefined;
  if (isTable(headers)) {
    const key = headers.keys().find((one) => one.toLowerCase() === name);
    return key === undefined ? undefined : headers.get(key);
  }
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name) return textOf(value);
  }
  return undefined;
}

/** All of them by their names in small letters; to look each up by itself would take the square of their number. */
export function messageHeaders(context: MessageContext): Record<string, string | undefined> {
  const headers = headersOf(context);
  const found: Record<string, string | undefined> = {};
  if (typeof headers !== 'object' || headers === null) return found;
  const valueOf = isTable(headers)
    ? (name: string) => headers.get(name)
    : (name: string) => textOf((headers as Record<string, unknown>)[name]);
  for (const name of messageHeaderNames(context)) {
    const small = name.toLowerCase();
    // The first of those that differ in their case only, as above.
    if (!Object.hasOwn(found, small)) found[small] = valueOf(name);
  }
  return found;
}

export function messageHeaderNames(context: MessageContext): string[] {
  const headers = headersOf(context);
  if (typeof headers !== 'object' || headers === null) return [];
  return isTable(headers) ? headers.keys() : Object.keys(headers);
}

function headersOf(context: MessageContext): unknown {
  if (context.getHeaders !== undefined) return context.getHeaders();
  if (context.getPacket !== undefined) return context.getPacket()?.properties?.userProperties;
  if (context.getMessage !== undefined) {
    const message = context.getMessage();
    return message?.headers ?? message?.properties?.headers;
  }
  return context.getMetadata?.();
}

function isTable(headers: object): headers is HeaderTable {
  const { keys, get } = headers as Partial<HeaderTable>;
  return typeof keys === 'function' && typeof get === 'function';
}

/**
 * A header that was sent several times counts as one, in the order they came. Lists of lists are no header:
 * senders nest them deeper than a stack goes.
 */
function textOf(value: unknown): string | undefined {
  if (!Array.isArray(value)) return plainTextOf(value);
  const texts = value.map(plainTextOf);
  return texts.includes(undefined) ? undefined : texts.join(',');
}

function plainTextOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  if (!Buffer.isBuffer(value)) return undefined;
  return isUtf8(value) ? value.toString() : NO_TEXT + value.toString('base64');
}
