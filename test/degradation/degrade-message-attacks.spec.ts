import { join } from 'node:path';
import { Controller, type INestApplicationContext } from '@nestjs/common';
import { Ctx, GrpcMethod, MessagePattern, Payload, Transport } from '@nestjs/microservices';
import { Degradation, Degrade, RateLimitModule, type DegradeOptions } from 'nestjs-weir';
import { root } from '../setup/ensure-built.js';
import { freePort } from '../support/free-port.js';
import { stopAll } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';
import { GrpcClients } from '../support/nest/grpc-clients.js';
import { startMessages, startService, type MessageApp } from '../support/nest/message-app.js';
import { WIRES } from '../support/nest/message-wires.js';

/** Attacks of callers on the caches, for answers that are not theirs, where there is no HTTP. */

let isDown = false;
const clock = new ManualClock();
const limits = () =>
  RateLimitModule.forRoot({ clock, degradation: { credentialHeaders: ['acme-*'] } });
const CACHED: DegradeOptions = { idempotent: true };

function unlessDown<T>(answer: T): T {
  if (isDown) throw new Error('down');
  return answer;
}

/** Shows its name, and would show a password as JSON. */
class Account {
  readonly name = 'ada';

  toJSON(): object {
    return { name: 'hunter2' };
  }
}

beforeEach(() => {
  isDown = false;
  clock.advance(60 * 60_000);
});
afterAll(stopAll);

describe('hostile callers on gRPC', () => {
  @Controller()
  class Products {
    @GrpcMethod('Products', 'Level1')
    @Degrade(CACHED)
    data({ name }: { name: string }): object {
      return unlessDown(name === 'instance' ? new Account() : { name: `of ${name}` });
    }

    @GrpcMethod('Products', 'Level2')
    @Degrade({ ...CACHED, vary: ['x-auth-token'] })
    byToken({ name }: { name: string }): object {
      return unlessDown({ name: `of ${name}` });
    }
  }

  let app: INestApplicationContext;
  let clients: GrpcClients;

  beforeAll(async () => {
    const url = `127.0.0.1:${await freePort()}`;
    const protoPath = join(root, 'test/degradation/degrade.proto');
    const options = { url, package: 'weir.test', protoPath };
    const metadata = { imports: [limits()], controllers: [Products] };
    app = await startService(metadata, 'stand-alone', { transport: Transport.GRPC, options });
    clients = new GrpcClients(url, protoPath);
  });

  afterAll(async () => {
    clients.close();
    await app.close();
  });

  const ask = async (name: string, headers: Record<string, string> = {}, method = 'Level1') => {
    const { replies } = await clients.call(`Products.${method}`, [{ name }], headers);
    return (replies[0] as { name?: string } | undefined)?.name;
  };

  it('get no copy of an instance', async () => {
    await ask('instance');
    isDown = true;
    expect(await ask('instance')).toBeUndefined();
  });

  it('get no answer to another message, and their own to the same one', async () => {
    await ask('one');
    isDown = true;
    expect([await ask('two'), await ask('one')]).toEqual([undefined, 'of one']);
  });

  it.each(['authorization', 'x-auth-token', 'x-session-id', 'cf-access-jwt-assertion', 'acme-id'])(
    'get nothing of somebody who has shown %s',
    async (header) => {
      const { stored } = app.get(Degradation).stats().caches;
      await ask(header, { [header]: 'alice' });
      expect(app.get(Degradation).stats().caches.stored).toBe(stored);
      isDown = true;
      expect(await ask(header, { [header]: 'mallory' })).toBeUndefined();
      expect(await ask(header)).toBeUndefined();
    },
  );

  it('get their own by a token that the method varies by', async () => {
    const token = (of: string) => ({ 'x-auth-token': of });
    await ask('it', token('alice'), 'Level2');
    isDown = true;
    expect(await ask('it', token('mallory'), 'Level2')).toBeUndefined();
    expect(await ask('it', token('alice'), 'Level2')).toBe('of it');
  });
});

describe.each(['tcp', 'nats', 'mqtt', 'rmq'])('hostile senders over %s', (name) => {
  @Controller()
  class Products {
    @MessagePattern('data')
    @Degrade(CACHED)
    data(@Payload() { name, deep }: { name: string; deep?: unknown }): object {
      return unlessDown(name === 'instance' ? new Account() : { name, deep });
    }

    @MessagePattern(['one', 'other'])
    @Degrade(CACHED)
    two(@Ctx() context: { getPattern?(): string; getArgs(): unknown[] }): object {
      return unlessDown({ at: String(context.getArgs()[name === 'tcp' ? 1 : 0]) });
    }

    @MessagePattern(name === 'mqtt' ? 'prices/+' : 'prices.*')
    @Degrade(CACHED)
    prices(@Ctx() context: { getArgs(): unknown[] }): object {
      return unlessDown({ at: String(context.getArgs()[0]) });
    }
  }

  let app: MessageApp;
  let hasHeaders: boolean;

  beforeAll(async () => {
    const wire = await WIRES[name]!();
    ({ hasHeaders } = wire);
    const metadata = { imports: [limits()], controllers: [Products] };
    app = await startMessages(wire, 'stand-alone', metadata);
  }, 120_000);

  afterAll(() => app.close());

  const ask = (data: object, headers?: Record<string, string>, pattern = 'data') =>
    app.send(pattern, data, headers).catch(() => 'failed');

  it('get no copy of an instance', async () => {
    await ask({ name: 'instance' });
    isDown = true;
    expect(await ask({ name: 'instance' })).toBe('failed');
  });

  it('get no answer to a message that differs far below', async () => {
    const question = (leaf: number) => {
      let deep: unknown = leaf;
      for (let i = 0; i < 30; i++) deep = { deep };
      return { name: 'deep', deep };
    };
    await ask(question(1));
    isDown = true;
    expect(await ask(question(2))).toBe('failed');
    expect(await ask(question(1))).toEqual(question(1));
  });

  it('get nothing of somebody by saying the name in the message', async () => {
    if (!hasHeaders) return;
    for (const header of ['authorization', 'x-auth-token', 'acme-id']) {
      isDown = false;
      const { stored } = app.app.get(Degradation).stats().caches;
      await ask({ name: header, user: 'alice' }, { [header]: 'of alice' });
      expect(app.app.get(Degradation).stats().caches.stored).toBe(stored);
      isDown = true;
      expect(await ask({ name: header, user: 'alice' }, { [header]: 'of mallory' })).toBe('failed');
    }
  });

  it('get no answer of another pattern of the same handler', async () => {
    await ask({}, undefined, 'one');
    isDown = true;
    expect(await ask({}, undefined, 'other')).toBe('failed');
    expect(await ask({}, undefined, 'one')).not.toBe('failed');
  });

  it('get no answer of another subject of the same pattern', async () => {
    if (name !== 'nats' && name !== 'mqtt') return;
    const subject = (of: string) => (name === 'mqtt' ? `prices/${of}` : `prices.${of}`);
    await ask({}, undefined, subject('gold'));
    isDown = true;
    expect(await ask({}, undefined, subject('tin'))).toBe('failed');
    expect(await ask({}, undefined, subject('gold'))).toEqual({ at: subject('gold') });
  });
});
