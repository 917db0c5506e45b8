import { type Observable } from 'rxjs';

/** Nest's servers for messages, as far as they are read here. */
interface MessageServer {
  getHandlerByPattern(pattern: string): { readonly isEventHandler?: boolean } | null;
}

/** Knows the patterns of events: a filter does not know which handler it stands behind. */
export class EventPatterns {
  private readonly servers: MessageServer[] = [];

  /** `started` emits the servers of all microservices of the application. */
  constructor(started: Observable<unknown>) {
    started.subscribe((server) => {
      if (isMessageServer(server)) this.servers.push(server);
    });
  }

  has(pattern: string): boolean {
    return this.servers.some(
      (server) => server.getHandlerByPattern(pattern)?.isEventHandler === true,
    );
  }
}

function isMessageServer(server: unknown): server is MessageServer {
  const { getHandlerByPattern } = (server ?? {}) as Partial<MessageServer>;
  return typeof getHandlerByPattern === 'function';
}
