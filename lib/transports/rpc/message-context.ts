import { type ArgumentsHost } from '@nestjs/common';

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
 * What Nest tells about a message, by what its contexts can do. Their classes are not asked for:
 * that would need the package of every broker.
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

/** What a message is about: its topic, subject, channel or pattern. */
export function subjectNameOf(context: MessageContext): string | undefined {
  return (
    context.getPattern?.() ??
    context.getTopic?.() ??
    context.getSubject?.() ??
    context.getChannel?.()
  );
}

/** Only TCP has a peer; whoever sent a message through a broker is far away behind it. */
export function socketOf(context: MessageContext): PeerSocket | undefined {
  return context.getSocketRef?.()?.netSocket;
}

export function isKafka(context: MessageContext): boolean {
  return context.getHeartbeat !== undefined;
}

export function isRmq(context: MessageContext): boolean {
  return context.getChannelRef !== undefined;
}

/** The message itself says that no answer is wanted. Undefined where it does not tell. */
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
