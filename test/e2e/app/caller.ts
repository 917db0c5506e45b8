import { type ExecutionContext } from '@nestjs/common';

/** The caller, as far as the routes want to know. Each transport carries it in its own way. */
export interface Caller {
  /** The owner of the tokens that are taken. */
  readonly key: string;
  /** The name that authentication finds; no caller without one is let in. */
  readonly name?: string;
  readonly isVip?: boolean;
  /** Whether the policy of all routes is to count this request. */
  readonly isCounted?: boolean;
  /** The app whose quota is charged. */
  readonly app?: string;
  readonly advanceMs?: number;
  /** Passes without the line, where a header is all that is known of a request. */
  readonly isHelper?: boolean;
}

/** The header, or the key of gRPC's metadata, that has the caller in it. */
export const CALLER = 'x-caller';

interface HttpRequest {
  readonly headers: Readonly<Record<string, string>>;
}

interface GrpcCall {
  readonly metadata: { get(name: string): unknown[] };
}

/** Messages are nothing but their caller; streams have no message yet, so there it is a header. */
export function callerOf(context: ExecutionContext): Caller {
  const args = context.getArgs<unknown[]>();
  switch (context.getType<string>()) {
    case 'http':
      return parse((args[0] as HttpRequest).headers[CALLER]);
    case 'graphql':
      return parse((args[2] as { req: HttpRequest }).req.headers[CALLER]);
    case 'ws':
      return args[1] as Caller;
    default:
      return isGrpcCall(args[2]) ? parse(args[2].metadata.get(CALLER)[0]) : (args[0] as Caller);
  }
}

/** Puts a user where applications on this transport put theirs. */
export function enter(context: ExecutionContext, user: object): void {
  const args = context.getArgs<object[]>();
  const place = { http: 0, ws: 0, graphql: 2, rpc: isGrpcCall(args[2]) ? 2 : 1 };
  Object.assign(args[place[context.getType<keyof typeof place>()]]!, { user });
}

function isGrpcCall(value: unknown): value is GrpcCall {
  return (value as Partial<GrpcCall> | undefined)?.metadata !== undefined;
}

function parse(text: unknown): Caller {
  return JSON.parse(text as string) as Caller;
}
