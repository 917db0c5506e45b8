import { connect } from 'node:net';
import { Controller, type ExecutionContext } from '@nestjs/common';
import { MessagePattern, Transport } from '@nestjs/microservices';
import { Degrade, RateLimit, RateLimitModule, type RateLimitModuleInput } from 'nestjs-weir';
import { freePort } from '../support/free-port.js';
import { stopAll } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';
import { attackedMessages, attackedWire, attacks } from '../support/nest/attacked.js';
import { startMessages, type MessageApp } from '../support/nest/message-app.js';
import { WIRES, type Wire } from '../support/nest/message-wires.js';
import { LogLines } from '../support/nest/warnings.js';

/** Payloads that are to make something of ours fail: each gets an answer, and no fault of ours. */

const ODD: Readonly<Record<string, unknown>> = {
  'a list': [[], null, {}],
  'a number': 17,
  'no number': NaN,
  'a text': 'text',
  'a long text': 'x'.repeat(90_000),
  'wrong types': { sender: {}, cost: '1', tier: 7, app: [] },
  'no figures': { sender: null, cost: null, tier: null, app: null },
  'a negative cost': { sender: 'a', cost: -1 },
  'a cost without end': { sender: 'a', cost: 1e300 },
  'names of prototypes': JSON.parse(
    '{"__proto__":{"sender":"x"},"constructor":{"prototype":{"polluted":1}},"tier":"__proto__","app":"constructor","sender":"__proto__","cost":1}',
  ) as unknown,
  'something to wait for': { sender: { then: 1 }, then: { then: 2 }, cost: { then: 3 }, cause: 1 },
};

/** Reads a field as a careless application does: types say that it is there. */
const field =
  <T>(name: string) =>
  (context: ExecutionContext): T =>
    context.getArgByIndex<Record<string, T>>(0)[name]!;

const LIMITS: RateLimitModuleInput = {
  clock: new ManualClock(),
  app: field<string>('app'),
  quota: { apps: { orders: { guaranteed: 1000, burst: 1000 } } },
  policies: {
    keyed: { rate: 1000, key: [{ param: 'sender' }, { param: 0 }, { header: 'x-sender' }] },
    priced: { rate: 1000, key: 'global', cost: field<number>('cost'), tier: field<string>('tier') },
  },
};

@Controller()
class Orders {
  @MessagePattern('keyed')
  @RateLimit('keyed', { quota: false })
  keyed(): object {
    return { ok: true };
  }

  @MessagePattern('priced')
  @RateLimit('priced', { quota: false })
  priced(): object {
    return { ok: true };
  }

  @MessagePattern('charged')
  @RateLimit()
  charged(): object {
    return { ok: true };
  }

  @MessagePattern('cached')
  @Degrade({ idempotent: true, vary: ['x-sender'] })
  cached(): object {
    return { ok: true };
  }

  @MessagePattern('principal')
  @Degrade({ idempotent: true, principal: field<string>('sender') })
  principal(): object {
    return { ok: true };
  }
}

const PATTERNS = ['keyed', 'priced', 'charged', 'cached', 'principal'];
const REFUSED = ['COST_OUT_OF_RANGE', 'UNKNOWN_APP', 'UNKNOWN_LIMIT'];

function isRefused(answer: unknown): boolean {
  return REFUSED.includes((answer as { code?: string }).code!);
}

describe.each(['tcp', 'redis', 'nats', 'mqtt', 'rmq'])('over %s', (name) => {
  let wire: Wire;
  beforeAll(async () => {
    wire = await WIRES[name]!();
  }, 120_000);
  afterAll(stopAll);

  describe('odd payloads', () => {
    const log = new LogLines();
    const unhandled: unknown[] = [];
    const listen = (error: unknown): void => void unhandled.push(error);
    let app: MessageApp;

    beforeAll(async () => {
      process.on('unhandledRejection', listen);
      app = await startMessages(wire, 'stand-alone', {
        imports: [RateLimitModule.forRoot(LIMITS)],
        controllers: [Orders],
      });
      log.start();
    });

    afterAll(async () => {
      log.stop();
      process.off('unhandledRejection', listen);
      await app?.close();
    });

    /** The answer, or the code of the error. */
    const ask = (pattern: string, data: unknown): Promise<unknown> =>
      app.send(pattern, data as object).catch((error: unknown) => error);

    describe.each(Object.keys(ODD))('%s', (what) => {
      it.each(PATTERNS)('gets an answer of %s that is no fault of ours', async (pattern) => {
        const answer = await ask(pattern, ODD[what]);
        if (!isRefused(answer)) expect(answer).toEqual({ ok: true });
        expect([log.stacks, unhandled]).toEqual([[], []]);
      });
    });
  });

  describe('attacks', () => {
    const clock = new ManualClock();
    const log = new LogLines();
    let app: MessageApp;
    beforeAll(async () => {
      app = await startMessages(wire, 'stand-alone', attackedMessages(clock));
      log.start();
    });
    afterAll(async () => {
      log.stop();
      await app?.close();
    });
    attacks(clock, log, () => attackedWire(app));
  });
});

/** Packets that Nest's own clients refuse to send, or cannot, and that anybody can write. */
describe('packets over a bare socket', () => {
  const log = new LogLines();
  const unhandled: unknown[] = [];
  const listen = (error: unknown): void => void unhandled.push(error);
  let app: MessageApp;
  let port: number;

  beforeAll(async () => {
    process.on('unhandledRejection', listen);
    port = await freePort();
    const options = { host: '127.0.0.1', port };
    const wire: Wire = {
      hasHeaders: false,
      serve: () => ({ transport: Transport.TCP, options }),
      connect: async () => ({
        send: (pattern) => packet(`"pattern":${JSON.stringify(pattern)},"data":{}`),
        emit: async () => undefined,
        close: async () => undefined,
      }),
    };
    app = await startMessages(wire, 'stand-alone', {
      imports: [RateLimitModule.forRoot(LIMITS)],
      controllers: [Orders],
    });
    log.start();
  });

  afterAll(async () => {
    log.stop();
    process.off('unhandledRejection', listen);
    await app.close();
  });

  /** The first answer to it: what was said, or the error. */
  const packet = (fields: string): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const text = `{${fields},"id":"1"}`;
      const socket = connect(port, '127.0.0.1', () => socket.write(`${text.length}#${text}`));
      socket.once('error', reject);
      socket.once('data', (data) => {
        socket.destroy();
        const { response, err } = JSON.parse(String(data).replace(/^\d+#/, '')) as {
          response?: unknown;
          err?: unknown;
        };
        resolve(err ?? response);
      });
    });

  const DEEP = `${'['.repeat(10_000)}${']'.repeat(10_000)}`;
  const PACKETS: Readonly<Record<string, string>> = {
    null: '"data":null',
    nothing: '"other":1',
    '10,000 levels': `"data":${DEEP}`,
    'levels in each field': `"data":{"sender":${DEEP},"cost":${DEEP},"tier":${DEEP},"app":${DEEP}}`,
    'levels in a header': `"data":{"sender":"a","cost":1,"app":"orders"},"metadata":{"x-sender":${DEEP}}`,
    'odd headers':
      '"data":{"sender":"a","cost":1,"app":"orders"},"metadata":[null,{"keys":1,"get":2}]',
    'headers that are none': '"data":{"sender":"a","cost":1,"app":"orders"},"metadata":7',
  };

  it.each(
    Object.keys(PACKETS).flatMap((what) => PATTERNS.map((pattern) => [what, pattern] as const)),
  )('%s gets an answer of %s that is no fault of ours', async (what, pattern) => {
    const answer = await packet(`"pattern":"${pattern}",${PACKETS[what]}`);
    if (!isRefused(answer)) expect(answer).toEqual({ ok: true });
    expect([log.stacks, unhandled]).toEqual([[], []]);
  });
});
