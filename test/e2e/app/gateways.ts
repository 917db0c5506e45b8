import { type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { IoAdapter } from '@nestjs/platform-socket.io';
import {
  AbstractWsAdapter,
  SubscribeMessage,
  WebSocketGateway,
  type MessageMappingProperties,
} from '@nestjs/websockets';
import { EMPTY, filter, fromEvent, mergeMap, type Observable } from 'rxjs';
import { WebSocketServer, type WebSocket } from 'ws';
import { moduleOf } from './modules.js';
import { type Shape } from './routes.js';

/** Answers come as an event: plain sockets have no other way. */
const GATEWAY: Shape = {
  host: () => WebSocketGateway(),
  route: (name) => SubscribeMessage(name),
  reply: (_client, text) => ({ event: 'answer', data: { text } }),
};

/** Does what Nest's own adapter for the package `ws` does with messages. */
class PlainAdapter extends AbstractWsAdapter {
  override create(): WebSocketServer {
    return new WebSocketServer({ server: this.httpServer as never });
  }

  override bindMessageHandlers(
    client: WebSocket,
    handlers: MessageMappingProperties[],
    transform: (data: unknown) => Observable<unknown>,
  ): void {
    fromEvent<{ data: string }>(client as never, 'message')
      .pipe(
        mergeMap(({ data: text }) => {
          const { event, data } = JSON.parse(text) as { event: string; data: unknown };
          const handler = handlers.find(({ message }) => message === event);
          return handler === undefined ? EMPTY : transform(handler.callback(data, event));
        }),
        filter((response) => response !== undefined),
      )
      .subscribe((response) => client.send(JSON.stringify(response)));
  }
}

const ADAPTERS = { 'socket.io': IoAdapter, ws: PlainAdapter };

export async function startGateways(kind: keyof typeof ADAPTERS): Promise<INestApplication> {
  const app = await NestFactory.create(moduleOf([GATEWAY], 'providers'), { logger: ['error'] });
  app.useWebSocketAdapter(new ADAPTERS[kind](app));
  return app;
}
