/** Where Nest keeps what its decorators say. Its own constants are exported from nowhere that is public. */
export const PATH = 'path';
export const VERB = 'method';
export const HOST = 'host';
export const VERSION = '__version__';
export const MODULE_PATH = '__module_path__';
export const HEADERS = '__headers__';
export const SSE = '__sse__';
export const ROUTE_ARGUMENTS = '__routeArguments__';
export const PASSTHROUGH = '__responsePassthrough__';

/** Handlers of messages: their patterns, and whether they are for requests or for events. */
export const MESSAGE_PATTERN = 'microservices:pattern';
export const HANDLER_TYPE = 'microservices:handler_type';
export const EVENT = 2;

/** Gateways, and the messages that their handlers subscribe to. */
export const IS_GATEWAY = 'websockets:is_gateway';
export const GATEWAY_OPTIONS = 'websockets:gateway_options';
export const GATEWAY_PORT = 'port';
export const GATEWAY_MESSAGE = 'websockets:message_mapping';
export const SOCKET_MESSAGE = 'message';

/** Resolvers: all their keys begin with the first. */
export const GRAPHQL = 'graphql:';
export const RESOLVER_TYPE = 'graphql:resolver_type';
export const RESOLVER_FIELD = 'graphql:resolver_name';
/** On fields of objects, which Nest guards by option only; and the token of those options. */
export const OBJECT_FIELD = 'graphql:resolve_property';
export const GRAPHQL_OPTIONS = 'GqlModuleOptions';

/** Guards, filters, interceptors and pipes of a class or a method, the outermost first. */
export const GUARDS = '__guards__';
export const FILTERS = '__exceptionFilters__';
export const INTERCEPTORS = '__interceptors__';
export const PIPES = '__pipes__';

/** Properties that Nest injects into. */
export const INJECTED_PROPERTIES = 'self:properties_metadata';

export type Class = abstract new (...args: never[]) => unknown;

/** A function; its own type says nothing about how it is called. */
export type Handler = object & { readonly name: string };

/** A decorator of a class or a method, which both are objects that metadata can be put on. */
export function onClassOrMethod(apply: (target: object) => void): ClassDecorator & MethodDecorator {
  return (target: object, _key?: string | symbol, descriptor?: PropertyDescriptor): void => {
    apply((descriptor?.value as object | undefined) ?? target);
  };
}
