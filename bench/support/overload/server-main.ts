// A process that holds one server, and tells what it has used and how late its loop was.
import { serve, type OverloadServerOptions, type Served } from './server.js';

export type OverloadRequest =
  | { readonly serve: OverloadServerOptions }
  | { readonly isLineOn: boolean }
  | 'usage';
export interface Usage {
  readonly cpuMicros: number;
  readonly delayP99: number;
}
export type OverloadReply = { readonly url: string } | Usage | { readonly failed: string };

let served: Served | undefined;

async function answer(request: OverloadRequest): Promise<OverloadReply> {
  if (typeof request === 'object') {
    if ('serve' in request) served = await serve(request.serve);
    else await served!.switchLine(request.isLineOn);
    return { url: served!.url };
  }
  const { user, system } = process.cpuUsage();
  return { cpuMicros: user + system, delayP99: served!.delayP99() };
}

process.on('message', (request: OverloadRequest) => {
  answer(request)
    .catch((error: unknown): OverloadReply => ({ failed: String(error) }))
    .then((reply) => process.send!(reply))
    .catch(() => process.exit(1));
});
