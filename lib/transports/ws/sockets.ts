import { type UpgradeRequest } from '../shared/requests.js';

/** A socket of socket.io or of `ws`, as far as limits look at it. */
export interface Socket {
  /** Where applications keep who a client is. */
  readonly data?: { readonly user?: unknown };
  readonly user?: unknown;
  /** socket.io; with `ws` only if the gateway has put it there when the client connected. */
  readonly request?: UpgradeRequest;
  readonly handshake?: Handshake;
  /** `ws`: the connection; null when it is closed. */
  readonly _socket?: { readonly remoteAddress?: string } | null;
  readonly readyState?: number;
  emit?(event: string, payload: unknown): unknown;
  send?(text: string): unknown;
  on?(event: string, listener: () => void): unknown;
  off?(event: string, listener: () => void): unknown;
  close?(code: number, reason: string): unknown;
  disconnect?(close: boolean): unknown;
}

/** socket.io: the request that a client connected with. */
export interface Handshake {
  readonly address?: string;
  readonly headers?: UpgradeRequest['headers'];
}

/** Of the states that the WebSocket API numbers. */
const OPEN = 1;

/** `ws` sockets have an `emit` as well, which does not reach the client. */
export function isPlainWebSocket(socket: Socket): boolean {
  return typeof socket.readyState === 'number' && typeof socket.send === 'function';
}

/** True for a plain WebSocket that is closed, or about to be. */
export function isClosed(socket: Socket): boolean {
  return isPlainWebSocket(socket) && socket.readyState! > OPEN;
}

export function sendEvent(socket: Socket, event: string, data: unknown): void {
  if (!isPlainWebSocket(socket)) socket.emit?.(event, data);
  else if (socket.readyState === OPEN) socket.send!(JSON.stringify({ event, data }));
}

/** socket.io has no codes: there the connection just ends. */
export function closeSocket(socket: Socket, code: number, reason: string): void {
  if (isPlainWebSocket(socket)) socket.close?.(code, reason);
  else socket.disconnect?.(true);
}

/** Calls back when the client goes; the result stops listening. */
export function whenGone(socket: Socket, callback: () => void): () => void {
  const event = isPlainWebSocket(socket) ? 'close' : 'disconnect';
  socket.on?.(event, callback);
  return () => void socket.off?.(event, callback);
}
