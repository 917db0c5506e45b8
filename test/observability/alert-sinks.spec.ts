import { createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { type AddressInfo } from 'node:net';
import { AlertNotSentError, webhook, type Alert } from 'nestjs-weir';
import { checkMonitorOptions } from '../../lib/observability/monitor-options.js';
import { logSink } from '../../lib/observability/alerts/sinks/log.js';
import { SinkQueue, type AlertSink } from '../../lib/observability/alerts/sinks/sink.js';
import { ManualClock } from '../support/manual-clock.js';
import { until } from '../support/until.js';

const alert = (more: Partial<Alert> = {}): Alert => ({
  ...{ rule: 'denialRise', series: 'policy:login', state: 'firing', severity: 'warning' },
  ...{ text: 'policy:login: 20 % of the requests are denied', value: 0.2, threshold: 0.05 },
  ...{
    sinceMs: 1_700_000_000_000,
    muted: false,
    fingerprint: 'f00d',
    nodeId: 'n',
    cluster: 'shop',
  },
  ...more,
});

interface Call {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

describe('a webhook', () => {
  const calls: Call[] = [];
  const answers: { status: number; headers?: Record<string, string> }[] = [];
  let server: Server;
  let url: string;

  beforeAll(async () => {
    server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        calls.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
        const { status, headers } = answers.shift() ?? { status: 204 };
        response.writeHead(status, headers).end();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?token=s3cret`;
  });
  beforeEach(() => {
    calls.length = 0;
    answers.length = 0;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  const queueOf = (sink: AlertSink) => {
    const [clock, faults] = [new ManualClock(), [] as string[]];
    const queue = new SinkQueue(sink, clock, (name, text) => faults.push(`${name}: ${text}`));
    return { clock, faults, queue };
  };

  it('is signed, and names what it tells, so that it can be told twice', async () => {
    await webhook({ url, secret: 'k', headers: { authorization: 'Bearer t' } }).send([alert()]);
    const [{ headers, body }] = calls as [Call];
    const signature = createHmac('sha256', 'k').update(body).digest('hex');
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'x-weir-signature': `sha256=${signature}`,
      'idempotency-key': 'f00d-firing-1700000000000',
      authorization: 'Bearer t',
    });
    expect(JSON.parse(body)).toEqual({ version: 1, alerts: [alert()] });
  });

  it('speaks the words of Alertmanager, as its API and as its webhook', async () => {
    const over = alert({ state: 'resolved', endedMs: 1_700_000_060_000 });
    await webhook({ url, format: 'alertmanager' }).send([alert(), over]);
    await webhook({ url, format: 'alertmanager-webhook' }).send([over]);
    const [api, hook] = calls.map(({ body }) => JSON.parse(body) as unknown) as [
      { endsAt: string }[],
      object,
    ];
    const labels = {
      ...{ alertname: 'weir_denialRise', severity: 'warning', series: 'policy:login' },
      cluster: 'shop',
    };
    expect(api).toMatchObject([
      { labels, startsAt: '2023-11-14T22:13:20.000Z' },
      { labels, endsAt: '2023-11-14T22:14:20.000Z' },
    ]);
    expect(Date.parse(api[0]!.endsAt)).toBeGreaterThan(Date.now() + 60_000);
    expect(hook).toMatchObject({
      ...{ version: '4', status: 'resolved', receiver: 'weir' },
      alerts: [{ status: 'resolved', labels, fingerprint: 'f00d' }],
    });
  });

  it('sends to Slack nothing but text', async () => {
    const text = 'policy:<!channel>&: denied';
    await webhook({ url, format: 'slack' }).send([alert({ text, cluster: 'a\u001b[2J\u202e\nb' })]);
    expect(JSON.parse(calls[0]!.body)).toEqual({
      text: ':warning: policy:&lt;!channel&gt;&amp;: denied (a·[2J··b)',
    });
  });

  it('is asked again after 5xx, and when it says so after 429', async () => {
    const { clock, faults, queue } = queueOf(webhook({ url }));
    answers.push({ status: 500 }, { status: 429, headers: { 'retry-after': '30' } });
    queue.push([alert()]);
    await until(() => faults.length === 1);
    clock.advance(1300);
    await until(() => faults.length === 2);
    clock.advance(29_000);
    await new Promise(setImmediate);
    expect(calls).toHaveLength(2);
    clock.advance(1000);
    await until(() => calls.length === 3);
    expect(new Set(calls.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
    expect(faults.join()).not.toContain('s3cret');
    expect(queue.dropped).toBe(0);
  });

  it.each([
    [404, /answered 404; it will not be asked again; 1 alerts are lost/],
    [301, /answered 301; redirects are not followed; 1 alerts are lost/],
  ])('is not asked again after %i', async (status, fault) => {
    const { clock, faults, queue } = queueOf(webhook({ url }));
    answers.push({ status, headers: { location: '/elsewhere' } });
    queue.push([alert()]);
    await until(() => faults.length === 1);
    clock.advance(600_000);
    await new Promise(setImmediate);
    expect(faults[0]).toMatch(fault);
    expect([calls.length, queue.dropped]).toEqual([1, 1]);
  });

  it('that nobody answers at is asked for ten minutes, and its queue is bounded', async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    const { clock, faults, queue } = queueOf(webhook({ url: `http://127.0.0.1:${port}/` }));
    queue.push([alert({ fingerprint: 'first' })]);
    await until(() => faults.length === 1);
    expect(faults[0]).toBe(`webhook 127.0.0.1:${port}: not reached (ECONNREFUSED)`);
    const state = (i: number) => (i % 2 === 0 ? 'firing' : 'resolved');
    queue.push(Array.from({ length: 300 }, (_, i) => alert({ state: state(i) })));
    expect(queue.dropped).toBe(45);
    for (let tries = 1; tries < 40 && !faults.some((one) => one.includes('lost')); tries++) {
      clock.advance(73_000);
      await until(() => faults.length > tries || faults.some((one) => one.includes('lost')));
    }
    expect(faults.at(-1)).toMatch(/100 alerts are lost/);
    queue.close();
  });

  it('splits what is more than 64 kB', async () => {
    const text = 'x'.repeat(2000);
    await webhook({ url }).send(Array.from({ length: 50 }, () => alert({ text })));
    expect(calls.length).toBe(2);
    for (const { body } of calls) expect(body.length).toBeLessThan(65_536);
  });

  it.each([
    [{ url: 'ftp://x/' }, 'webhook.url'],
    [{ url: 'http://user:pw@x/' }, 'webhook.url'],
    [{ url: 'x' }, 'webhook.url'],
    [{ url: 'http://x', format: 'xml' }, 'webhook.format'],
    [{ url: 'http://x', timeout: 'soon' }, 'webhook.timeout'],
    [{ url: 'http://x', secret: '' }, 'webhook.secret'],
    [{ url: 'http://x', headers: { 'a b': 'c' } }, 'webhook.headers.a b'],
    [{ url: 'http://x', headers: { a: 'b\nc' } }, 'webhook.headers.a'],
    [{ url: 'http://x', retries: 3 }, 'webhook.retries'],
  ])('that cannot be is refused: %j', (options, field) => {
    expect(() => webhook(options as never)).toThrow(`${field}: `);
    expect(() => webhook(options as never)).not.toThrow('pw');
  });
});

describe('sinks', () => {
  it('have one call at a time, and a slow one delays only itself', async () => {
    const clock = new ManualClock();
    let release = (): void => {};
    const slow: number[] = [];
    const quick: number[] = [];
    const slowSink: AlertSink = {
      send: (batch) => {
        slow.push(batch.length);
        return new Promise((resolve) => (release = resolve));
      },
    };
    const queues = [slowSink, { send: (batch: readonly Alert[]) => void quick.push(batch.length) }];
    const [one, other] = queues.map((sink) => new SinkQueue(sink, clock, () => {}));
    for (let i = 0; i < 3; i++) {
      one!.push([alert()]);
      other!.push([alert()]);
      await new Promise(setImmediate);
    }
    expect([slow, quick]).toEqual([[1], [1, 1, 1]]);
    release();
    await new Promise(setImmediate);
    expect(slow).toEqual([1, 2]);
  });

  it('get what fires again as often as they ask for', async () => {
    const clock = new ManualClock();
    const sent: number[] = [];
    const sink = {
      repeatMs: 60_000,
      send: (batch: readonly Alert[]) => void sent.push(batch.length),
    };
    const queue = new SinkQueue(sink, clock, () => {});
    for (let second = 0; second < 150; second++) {
      clock.advance(1000);
      queue.repeat(() => [alert()]);
      await Promise.resolve();
      await new Promise(setImmediate);
    }
    expect(sent).toEqual([1, 1, 1]);
  });

  it('of your own may throw, and say that there is no use in asking again', async () => {
    const [clock, faults] = [new ManualClock(), [] as string[]];
    const send = (): never => {
      throw new AlertNotSentError('no such room', 'never');
    };
    const queue = new SinkQueue({ name: 'chat', send }, clock, (_, text) => faults.push(text));
    queue.push([alert()]);
    await new Promise(setImmediate);
    expect(faults).toEqual(['no such room; 1 alerts are lost']);
  });

  it('are checked', () => {
    expect(() => checkMonitorOptions({ sinks: [{}] as never })).toThrow('monitor.sinks: ');
    expect(() => checkMonitorOptions({ sinks: 'log' as never })).toThrow('monitor.sinks: ');
  });

  it('write one line of text for each change into the log', async () => {
    const lines: string[] = [];
    const line = (level: string) => (text: string) => lines.push(`${level} ${text}`);
    const sink = logSink({ log: line('log'), warn: line('warn'), error: line('error') });
    await sink.send([
      alert({ cluster: 'a\u001b\nb' }),
      alert({ severity: 'critical' }),
      alert({ state: 'resolved', text: 'policy:login: denialRise is over' }),
    ]);
    expect(lines).toEqual([
      'warn warning denialRise: policy:login: 20 % of the requests are denied [a··b]',
      'error critical denialRise: policy:login: 20 % of the requests are denied [shop]',
      'log policy:login: denialRise is over [shop]',
    ]);
  });
});
