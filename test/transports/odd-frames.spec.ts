import { Inject } from '@nestjs/common';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { RateLimit, RateLimitModule } from 'nestjs-weir';

import { io, type Socket } from 'socket.io-client';
import { startHttp, type HttpApp } from '../support/nest/http-apps.js';
import { PlainAdapter } from '../support/nest/plain-sockets.js';
import { until } from '../support/until.js';
import {
  expectNoFaults,
  limits,
  ONLY,
  Backend,
  levels,
  DEEP,
  PAYLOADS,
  REFUSED,
} from './careless-app.js';

expectNoFaults();

describe('on gateways', () => {
  @WebSocketGateway()
  class Orders {
    constructor(@Inject(Backend) private readonly backend: Backend) {}

    @SubscribeMessage('keyed')
    @RateLimit('keyed', ONLY)
    keyed(): object {
      return { text: 'ok' };
    }

    @SubscribeMessage('placed')
    @RateLimit({ rate: 1e6, key: { param: 0 } }, ONLY)
    placed(): object {
      return { text: 'ok' };
    }

    @SubscribeMessage('priced')
    @RateLimit('priced', ONLY)
    priced(): object {
      return { text: 'ok' };
    }

    @SubscribeMessage('charged')
    @RateLimit()
    charged(): object {
      return { text: 'ok' };
    }

    @SubscribeMessage('protected')
    protected(_client: unknown, data: unknown): Promise<object> {
      return this.backend.ask(data);
    }
  }

  const modules = () => ({
    imports: [RateLimitModule.forRoot(limits('data.sender'))],
    providers: [Orders, Backend],
  });
  const EVENTS = ['keyed', 'placed', 'priced', 'charged', 'protected'];
  const isFine = (answer: unknown): boolean => {
    const { text, code, status } = (answer ?? {}) as Record<string, unknown>;
    return text === 'ok' || (status === 'error' && REFUSED.includes(code as string));
  };

  describe('of socket.io', () => {
    let http: HttpApp;
    let socket: Socket;
    beforeAll(async () => {
      http = await startHttp('express', modules());
      socket = io(http.url, { transports: ['websocket'], forceNew: true, reconnection: false });
      await until(() => socket.connected, { what: 'a connection' });
    });
    afterAll(async () => {
      socket.disconnect();
      await http.close();
    });

    // The client itself looks for bytes in what it sends, level by level.
    const sent = Object.entries(PAYLOADS).map(
      ([what, text]) => [what, text.replaceAll(DEEP, levels(1000))] as const,
    );

    it.each(sent)('%s is answered', async (_, text) => {
      const data = JSON.parse(text) as unknown;
      for (const event of EVENTS) {
        const answer: unknown = await socket.timeout(5000).emitWithAck(event, data);
        expect([event, answer, isFine(answer)]).toEqual([event, answer, true]);
      }
    });

    it.each<[string, unknown[]]>([
      ['nothing', []],
      ['several values', [null, { cost: 1 }, 7, 'x']],
      ['bytes', [Buffer.alloc(1000)]],
      [
        'bytes inside',
        [{ sender: Buffer.alloc(10), cost: Buffer.alloc(1), app: Buffer.from('x') }],
      ],
    ])('%s, with and without an acknowledgement, is answered', async (_, data) => {
      for (const event of EVENTS) {
        socket.emit(event, ...data);
        const answer: unknown = await socket.timeout(5000).emitWithAck(event, ...data);
        expect([event, answer, isFine(answer)]).toEqual([event, answer, true]);
      }
      expect(socket.connected).toBe(true);
    });
  });

  describe('of plain sockets', () => {
    let http: HttpApp;
    let adapter: PlainAdapter;
    beforeAll(async () => {
      http = await startHttp('express', modules(), (app) => {
        adapter = new PlainAdapter(app);
        app.useWebSocketAdapter(adapter);
      });
    });
    afterAll(() => http.close());

    it.each(Object.keys(PAYLOADS))('%s is answered', async (what) => {
      for (const event of EVENTS) {
        const socket = adapter.connect();
        socket.emit('message', `{"event":"${event}","data":${PAYLOADS[what]}}`);
        await until(() => socket.sent.length > 0, { what: `an answer to ${event}` });
        const [answer] = socket.sent as [{ event?: string; data?: unknown }];
        expect([event, isFine(answer.event === 'exception' ? answer.data : answer)]).toEqual([
          event,
          true,
        ]);
      }
    });
  });
});
