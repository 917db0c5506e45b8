// A process that holds one server and tells how much CPU time it has used.
import { serve, type ServerOptions } from './server.js';
import { slowClock } from './slow-clock.js';

export type ServerRequest = { readonly serve: ServerOptions; readonly slower: number } | 'cpu';
export type ServerReply =
  | { readonly url: string }
  | { readonly cpuMicros: number }
  | { readonly failed: string };

async function answer(request: ServerRequest): Promise<ServerReply> {
  if (typeof request === 'object') {
    if (request.slower > 1) slowClock(request.slower);
    return { url: await serve(request.serve) };
  }
  const { user, system } = process.cpuUsage();
  return { cpuMicros: user + system };
}

process.on('message', (request: ServerRequest) => {
  answer(request)
    .catch((error: unknown): ServerReply => ({ failed: String(error) }))
    .then((reply) => process.send!(reply))
    .catch(() => process.exit(1));
});
