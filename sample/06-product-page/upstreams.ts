import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';
import { baseOf, recommendationsFor, reviewsOf, salesOf } from './catalog.js';
import { UPSTREAM_MS } from './settings.js';

export const UPSTREAMS = ['base', 'reviews', 'sales', 'recommendations'] as const;
export type UpstreamName = (typeof UPSTREAMS)[number];

export const MODES = ['normal', 'slow', 'dead'] as const;
export type UpstreamMode = (typeof MODES)[number];

interface Service {
  /** How long it takes, as a part of the slowest. */
  readonly share: number;
  readonly answer: (id: string, viewer: string) => object;
}

const SERVICES: Readonly<Record<UpstreamName, Service>> = {
  base: { share: 0.2, answer: baseOf },
  reviews: { share: 1, answer: reviewsOf },
  sales: { share: 0.4, answer: salesOf },
  recommendations: { share: 0.8, answer: recommendationsFor },
};

/** Longer than anybody waits. */
const SLOW_MS = 3000;

/** The four services behind the page: real HTTP servers, and a switch on each. */
@Injectable()
export class Upstreams implements OnModuleInit, OnApplicationShutdown {
  readonly modes: Record<UpstreamName, UpstreamMode> = {
    ...{ base: 'normal', reviews: 'normal', sales: 'normal', recommendations: 'normal' },
  };
  private readonly servers = new Map<UpstreamName, Server>();

  urlOf(name: UpstreamName): string {
    const { port } = this.servers.get(name)!.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  async onModuleInit(): Promise<void> {
    for (const name of UPSTREAMS) {
      const server = createServer((request, response) => this.serve(name, request, response));
      this.servers.set(name, server.listen(0, '127.0.0.1'));
      await once(server, 'listening');
    }
  }

  onApplicationShutdown(): void {
    for (const server of this.servers.values()) {
      server.close();
      server.closeAllConnections();
    }
  }

  private serve(name: UpstreamName, request: IncomingMessage, response: ServerResponse): void {
    const mode = this.modes[name];
    if (mode === 'dead') {
      request.socket.destroy();
      return;
    }
    const { share, answer } = SERVICES[name];
    const { pathname, searchParams } = new URL(request.url!, 'http://upstream');
    const reply = (): void => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(answer(pathname.slice(1), searchParams.get('viewer') ?? '')));
    };
    const timer = setTimeout(reply, mode === 'slow' ? SLOW_MS : share * UPSTREAM_MS);
    response.once('close', () => clearTimeout(timer));
  }
}
