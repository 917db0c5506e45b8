import { RequestMethod } from '@nestjs/common';
import {
  type Class,
  type Handler,
  GATEWAY_MESSAGE,
  GATEWAY_OPTIONS,
  GATEWAY_PORT,
  HOST,
  MESSAGE_PATTERN,
  PATH,
  RESOLVER_FIELD,
  RESOLVER_TYPE,
  SOCKET_MESSAGE,
  VERB,
} from '../requests/nest-metadata.js';

/** In the patterns of NATS, MQTT and RabbitMQ: the subject of a message says more than they do. */
const WILDCARD = /[*>+#]/;
/** The verb of a call or a message. */
export const CALL = 'CALL';

type PathVersion = string | symbol;

interface GatewayOptions {
  readonly namespace?: unknown;
  readonly path?: unknown;
}

/** A path of HTTP under which a handler is served. */
export interface ServedPath {
  readonly path: string;
  readonly version?: PathVersion | PathVersion[];
}

/** Where a handler is served, as a text that is the same in all processes and all deployments. */
export interface RoutePlace {
  /** Its name, and its paths or patterns. */
  readonly name: string;
  /** As it is declared; `GET` where it takes all. */
  readonly verb: string;
  /** There are several, or a pattern has wildcards: only a request shows which one it is. */
  readonly isOneOfSeveral: boolean;
  /** The host is a part of the address. */
  readonly isByHost: boolean;
}

export function routePlaceOf(
  type: Class,
  handler: Handler,
  method: string,
  paths: readonly ServedPath[],
): RoutePlace {
  const patterns = listOf(Reflect.getMetadata(MESSAGE_PATTERN, handler)).map(patternText);
  const hosts = listOf(Reflect.getMetadata(HOST, type)).map(String);
  // Not in the order in which modules are found, which is another one after the next deployment.
  const places = [...new Set([...paths.map(pathText), ...patterns])].sort();
  const verb = (Reflect.getMetadata(VERB, handler) ?? RequestMethod.GET) as RequestMethod;
  return {
    name: [
      ...[`${type.name}.${method}`, ...places, ...hosts.map((host) => `on ${host}`)],
      ...[...fieldOf(handler), ...socketOf(type, handler)],
    ].join(' '),
    verb: paths.length === 0 ? CALL : verb === RequestMethod.ALL ? 'GET' : RequestMethod[verb],
    isOneOfSeveral: places.length > 1 || patterns.some((pattern) => WILDCARD.test(pattern)),
    isByHost: hosts.length > 0,
  };
}

/** How values of a request are named. */
export interface ParamNames {
  /** An example of a path, for messages. */
  readonly such: string;
  /** The thing whose values have names, and no places. */
  readonly of?: string;
  /** The spelling in the place of one that means nothing here; undefined if it means something. */
  readonly meantBy: (path: string) => string | undefined;
}

const HTTP: ParamNames = {
  such: "'query.id', 'params.id' or 'body.id'",
  of: 'requests of HTTP',
  // A name alone is none that a caller has sent: `id` of Fastify is the number of the request.
  meantBy: (path) => (path.includes('.') ? undefined : wholePath(HTTP)),
};
const RESOLVER: ParamNames = {
  such: "'args.id'",
  of: 'arguments of GraphQL',
  meantBy: (path) =>
    /^(args|variables|context|req)\./.test(path) ? undefined : wholePath(RESOLVER),
};
const SOCKET: ParamNames = {
  such: "'data.id', 'client.id' or 'handshake.query.id'",
  meantBy: (path) => (/^(data|client|handshake)\b/.test(path) ? undefined : wholePath(SOCKET)),
};
const CALLS: ParamNames = {
  such: "'id'",
  of: 'messages of gRPC',
  // As other transports spell it.
  meantBy: (path) =>
    /^(args|body|params|query)\./.test(path)
      ? `by the name of a field on this route: '${path.slice(path.indexOf('.') + 1)}', or 'request.${path}' where ` +
        'there is such a field'
      : undefined,
};

const wholePath = ({ such }: ParamNames): string => `by its whole path on this route: ${such}`;

/** Undefined where payloads may be anything: messages, and other frameworks. */
export function paramNamesOf(handler: Handler): ParamNames | undefined {
  if (Reflect.hasMetadata(PATH, handler)) return HTTP;
  if (Reflect.hasMetadata(RESOLVER_TYPE, handler)) return RESOLVER;
  if (Reflect.hasMetadata(GATEWAY_MESSAGE, handler)) return SOCKET;
  const patterns = listOf(Reflect.getMetadata(MESSAGE_PATTERN, handler));
  const isGrpc = patterns.some((pattern) => Object.hasOwn(Object(pattern) as object, 'rpc'));
  return isGrpc ? CALLS : undefined;
}

/** The field of a schema that a resolver is for. */
function fieldOf(handler: Handler): string[] {
  const operation: unknown = Reflect.getMetadata(RESOLVER_TYPE, handler);
  if (operation === undefined) return [];
  return [operation, Reflect.getMetadata(RESOLVER_FIELD, handler)].map(patternText);
}

/** The message of a WebSocket, and the gateway that it comes to. */
function socketOf(type: Class, handler: Handler): string[] {
  const options = Reflect.getMetadata(GATEWAY_OPTIONS, type) as GatewayOptions | undefined;
  if (options === undefined) return [];
  const message = patternText(Reflect.getMetadata(SOCKET_MESSAGE, handler));
  const { namespace, path } = options;
  return [message, ...[Reflect.getMetadata(GATEWAY_PORT, type), namespace, path].map(String)];
}

function pathText({ path, version }: ServedPath): string {
  return servedPathText(path, version && [version].flat().map(String).join());
}

/** A path, with the version that is served there if only a request shows it. */
export function servedPathText(path: string, version: string | undefined): string {
  return version === undefined ? path : `${path} version ${version}`;
}

function patternText(pattern: unknown): string {
  return typeof pattern === 'string' ? pattern : String(JSON.stringify(pattern));
}

function listOf(value: unknown): unknown[] {
  return value === undefined ? [] : [value].flat();
}
