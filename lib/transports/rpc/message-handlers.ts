/** Where Nest keeps what a handler listens to, and whether for messages or for events. */
const PATTERNS = 'microservices:pattern';
const HANDLER_TYPE = 'microservices:handler_type';
const EVENT = 2;

/** A function; its own type says nothing about how it is called. */
type Handler = object;

const patterns = new WeakMap<Handler, readonly string[]>();

/** True for what `@EventPattern` stands on. */
export function isEventHandler(handler: Handler): boolean {
  return Reflect.getMetadata(HANDLER_TYPE, handler) === EVENT;
}

/**
 * The pattern that a handler was declared with. Not the topic of the message: with wildcards there
 * are as many of these as senders think of, and consumption is counted for each name.
 */
export function patternOf(handler: Handler, subject: string | undefined): string {
  let declared = patterns.get(handler);
  if (declared === undefined) patterns.set(handler, (declared = declaredPatterns(handler)));
  if (subject !== undefined && declared.includes(subject)) return subject;
  return declared[0] ?? 'message';
}

function declaredPatterns(handler: Handler): string[] {
  const declared = Reflect.getMetadata(PATTERNS, handler) as unknown[] | undefined;
  return (declared ?? []).map((pattern) =>
    typeof pattern === 'object' && pattern !== null && !(pattern instanceof RegExp)
      ? JSON.stringify(pattern)
      : String(pattern),
  );
}
