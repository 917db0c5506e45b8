import { Controller, Logger } from '@nestjs/common';
import { EventPattern, MessagePattern } from '@nestjs/microservices';
import { DroppedEvents, isRateLimitError, RateLimit, RateLimitModule } from 'nestjs-weir';
import { stopAll, until } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';
import { KINDS, startMessages, type MessageApp } from '../support/nest/message-app.js';
import { WIRES, type Wire } from '../support/nest/message-wires.js';

const seen: string[] = [];

@Controller()
class Messages {
  @MessagePattern('sum')
  @RateLimit('two')
  sum({ numbers }: { numbers: number[] }): object {
    return { sum: numbers.reduce((a, b) => a + b, 0) };
  }

  @EventPattern('ordered')
  @RateLimit('two')
  ordered({ id }: { id: string }): void {
    seen.push(id);
  }

  @MessagePattern('tenant')
  @RateLimit({ rate: 1, period: '1m', key: { param: 'tenant.id' } })
  tenant(): object {
    return { ok: true };
  }

  @MessagePattern('client')
  @RateLimit({ rate: 1, period: '1m', key: { header: 'X-Client' } })
  client(): object {
    return { ok: true };
  }

  @MessagePattern('own-words')
  @RateLimit({ rate: 1, period: '1m', key: 'global', rejection: () => new Error('not this way') })
  ownWords(): object {
    return { ok: true };
  }

  @EventPattern('own-words-event')
  @RateLimit({ rate: 1, period: '1m', key: 'global', rejection: () => new Error('to nobody') })
  ownWordsEvent({ id }: { id: string }): void {
    seen.push(id);
  }
}

const DENIED = {
  status: 'error',
  statusCode: 429,
  code: 'RATE_LIMITED',
  message: 'Too many requests',
  policy: 'two',
  retryAfterMs: 30_000,
};

afterAll(stopAll);

describe.each(Object.keys(WIRES))('over %s', (name) => {
  let wire: Wire;

  beforeAll(async () => {
    wire = await WIRES[name]!();
  });

  describe.each(KINDS)('%s', (kind) => {
    let app: MessageApp;
    const clock = new ManualClock();
    const logged: string[] = [];

    beforeAll(async () => {
      const policies = { two: { rate: 2, period: '1m', key: 'global' } } as const;
      app = await startMessages(wire, kind, {
        imports: [RateLimitModule.forRoot({ clock, policies })],
        controllers: [Messages],
      });
      const note = (level: string) => (text: unknown) => logged.push(`${level} ${String(text)}`);
      Logger.overrideLogger({ log: () => {}, warn: note('warn'), error: note('error') });
    });

    beforeEach(() => {
      clock.advance(600_000);
      seen.length = 0;
      logged.length = 0;
    });

    afterAll(async () => {
      Logger.overrideLogger(false);
      await app.close();
    });

    const outcome = (...args: Parameters<MessageApp['send']>): Promise<unknown> =>
      app.send(...args).catch((error: unknown) => error);

    it('answers requests, and tells the denied ones when to come back', async () => {
      const data = { numbers: [1, 2, 3] };
      expect(await outcome('sum', data)).toEqual({ sum: 6 });
      expect(await outcome('sum', data)).toEqual({ sum: 6 });
      const denied = await outcome('sum', data);
      expect(denied).toEqual(DENIED);
      expect(isRateLimitError(denied)).toBe(true);
      clock.advance(30_000);
      expect(await outcome('sum', data)).toEqual({ sum: 6 });
      expect(logged).toEqual([]);
    });

    it('drops and counts events, with one line in the log', async () => {
      const dropped = app.app.get(DroppedEvents);
      const { 'Messages.ordered': before = 0 } = dropped.byHandler();
      for (const id of ['a', 'b', 'c', 'd', 'e']) await app.emit('ordered', { id });
      await until(() => dropped.byHandler()['Messages.ordered'] === before + 3);
      expect([...seen].sort()).toHaveLength(2);
      expect(dropped.total).toBe(
        Object.values(dropped.byHandler()).reduce((sum, count) => sum + count, 0),
      );
      expect(logged).toEqual(['warn Messages.ordered: 1 event over the limit dropped']);
    });

    it('reads keys from the message', async () => {
      const codes = [];
      for (const id of ['acme', 'umbrella', 'acme']) {
        codes.push(isRateLimitError(await outcome('tenant', { tenant: { id } })));
      }
      expect(codes).toEqual([false, false, true]);
    });

    it('reads keys from the headers, where there are any', async () => {
      const denied = [];
      for (const client of ['one', 'two', 'one']) {
        denied.push(isRateLimitError(await outcome('client', {}, { 'x-client': client })));
      }
      // Without headers there is one bucket for all, and never none.
      expect(denied).toEqual(wire.hasHeaders ? [false, false, true] : [false, true, true]);
    });

    it("leaves a policy's own rejection to the application, but never throws it at an event", async () => {
      await outcome('own-words', {});
      expect(await outcome('own-words', {})).toEqual({
        status: 'error',
        message: 'Internal server error',
      });
      logged.length = 0;
      const dropped = app.app.get(DroppedEvents);
      const before = dropped.total;
      for (const id of ['a', 'b']) await app.emit('own-words-event', { id });
      await until(() => dropped.total === before + 1);
      expect(seen).toHaveLength(1);
      expect(logged.filter((line) => line.startsWith('error'))).toEqual([]);
    });
  });
});
