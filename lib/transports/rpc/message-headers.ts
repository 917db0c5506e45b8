import { isUtf8 } from 'node:buffer';
import { type MessageContext } from './message-context.js';

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

/** A header that was sent several times counts as one, in the order they came. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  if (Buffer.isBuffer(value))
    return isUtf8(value) ? value.toString() : NO_TEXT + value.toString('base64');
  return Array.isArray(value) ? value.map(textOf).join(',') : undefined;
}
