import { io } from 'socket.io-client';
import { WebSocket } from 'ws';
import { type Call } from './clients.js';
import { failed, passed, type Failure } from './outcome.js';

interface Event {
  readonly event: string;
  readonly data: unknown;
}

export interface Connection {
  send(event: string, data: object): void;
  /** The next event from the server. */
  next(): Promise<Event>;
  close(): void;
}

/** A connection for each caller: the socket has its name. */
export function callSocket(connect: () => Promise<Connection>): {
  readonly call: Call;
  readonly close: () => void;
} {
  const connections = new Map<string, Connection>();
  const connectionOf = async (who: string): Promise<Connection> => {
    const connection = connections.get(who) ?? (await connect());
    connections.set(who, connection);
    return connection;
  };
  return {
    call: async (route, caller) => {
      const connection = await connectionOf(`${caller.key} ${caller.name}`);
      const answer = connection.next();
      connection.send(route, caller);
      const { event, data } = await answer;
      return event === 'answer' ? passed((data as { text: string }).text) : failed(data as Failure);
    },
    close: () => {
      for (const connection of connections.values()) connection.close();
    },
  };
}

export async function connectSocketIo(url: string): Promise<Connection> {
  const socket = io(url, { transports: ['websocket'], forceNew: true, reconnection: false });
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('connect_error', reject);
  });
  return {
    send: (event, data) => void socket.emit(event, data),
    next: () =>
      new Promise((resolve) => {
        socket.prependAny((event: string, data: unknown) => {
          socket.offAny();
          resolve({ event, data });
        });
      }),
    close: () => void socket.disconnect(),
  };
}

export async function connectPlain(url: string): Promise<Connection> {
  const socket = new WebSocket(url.replace('http', 'ws'));
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  return {
    send: (event, data) => socket.send(JSON.stringify({ event, data })),
    next: () =>
      new Promise((resolve) => {
        socket.once('message', (text: Buffer) => resolve(JSON.parse(text.toString()) as Event));
      }),
    close: () => socket.terminate(),
  };
}
