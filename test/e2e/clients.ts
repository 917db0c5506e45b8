import { readStatus } from '../support/nest/google-rpc.js';
import { type GrpcClients } from '../support/nest/grpc-clients.js';
import { type MessageClient } from '../support/nest/message-wires.js';
import { CALLER, type Caller } from './app/caller.js';
import { rpcOf, type GrpcKind } from './app/proto.js';
import { type RouteName } from './app/routes.js';
import { failed, passed, type Failure, type Outcome } from './outcome.js';

/** Calls the routes of an application over its transport. */
export type Call = (route: RouteName, caller: Caller) => Promise<Outcome>;

const headersOf = (caller: Caller): Record<string, string> => ({
  [CALLER]: JSON.stringify(caller),
});

export const callHttp =
  (url: string): Call =>
  async (route, caller) => {
    const response = await fetch(`${url}/${route}`, { headers: headersOf(caller) });
    const body = (await response.json()) as Failure & {
      text: string;
      'violated-policies'?: string[];
    };
    if (response.ok) return passed(body.text);
    return failed({ ...body, policy: body['violated-policies']?.[0] });
  };

export const callGraphql =
  (url: string): Call =>
  async (route, caller) => {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headersOf(caller) },
      body: JSON.stringify({ query: `{ text: ${route} }` }),
    });
    const { data, errors, ...problem } = (await response.json()) as Failure & {
      data: { text: string };
      errors?: { message: string; extensions: Failure }[];
    };
    // Refused before GraphQL has seen it.
    if (!response.ok && problem.code !== undefined) return failed(problem);
    const [error] = errors ?? [];
    if (error === undefined) return passed(data.text);
    return failed({ ...error.extensions, message: error.message });
  };

const OK = 0;
const RESOURCE_EXHAUSTED = 8;
const UNAVAILABLE = 14;

export const callGrpc =
  (clients: GrpcClients, kind: GrpcKind): Call =>
  async (route, caller) => {
    const { code, details, replies, trailers } = await clients.call(
      `${kind}.${rpcOf(route)}`,
      [{}, {}],
      headersOf(caller),
    );
    if (code === OK) return passed(replies[0]!.text);
    if (code !== RESOURCE_EXHAUSTED && code !== UNAVAILABLE) return failed({ message: details });
    const status = readStatus(trailers.get('grpc-status-details-bin')[0] as Buffer);
    const { reason, metadata } = status.details.ErrorInfo as {
      reason: string;
      metadata?: { policy?: string };
    };
    const retryAfterMs = Number(trailers.get('retry-after-ms')[0]);
    return failed({ code: reason, policy: metadata?.policy, retryAfterMs });
  };

export const callMessages =
  (client: MessageClient): Call =>
  (route, caller) =>
    client.send(route, caller).then(
      (answer) => passed((answer as { text: string }).text),
      (error: Failure) => failed(error),
    );
