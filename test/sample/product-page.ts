import { Agent, request, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { type RecoveryStats } from 'nestjs-weir';
import { type VitalFigures } from '../../sample/06-product-page/vitals.js';
import { until } from '../support/until.js';
import { RunningSample } from './running-sample.js';

export const UPSTREAMS = ['base', 'reviews', 'sales', 'recommendations'] as const;

export interface Product {
  readonly viewer?: string;
  readonly reviews?: readonly unknown[];
  readonly sales?: unknown;
  readonly recommendations?: { readonly viewer: string };
  readonly detail?: string;
}

export interface Answer {
  readonly status: number;
  /** 0 for an answer that says nothing of itself. */
  readonly level: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Product;
  readonly tookMs: number;
}

export interface PageState {
  readonly switches: Readonly<Record<string, string>>;
  readonly recovery: RecoveryStats;
  readonly answers: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly upstreams: readonly { readonly name: string; readonly breaker: string }[];
  readonly deadlineMs: number;
  readonly vitals: VitalFigures;
}

/** The sample of the product page, and what callers, operators and onlookers see of it. */
export class ProductPage {
  // All connections take turns, so that none is idle for long enough to be closed.
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 200, scheduling: 'fifo' });
  private unknown = 1000;

  private constructor(
    private readonly sample: RunningSample,
    readonly url: string,
  ) {}

  static async start(
    env: Readonly<Record<string, string>> & { PORT: string },
  ): Promise<ProductPage> {
    const sample = await RunningSample.start('06-product-page', env, 'the way back');
    return new ProductPage(sample, `http://127.0.0.1:${env.PORT}`);
  }

  get written(): string {
    return this.sample.written;
  }

  /** A product that nobody has asked for. */
  unknownProduct(): string {
    return String(this.unknown++);
  }

  /** Rejects unless a whole answer came. */
  async ask(product: string, user: string): Promise<Answer> {
    const startedMs = performance.now();
    const { response, text } = await this.get(`/products/${product}`, { 'x-user': user });
    return { ...answerOf(response, text), tookMs: performance.now() - startedMs };
  }

  /** Opens so many connections, as those have who have been looking at the page for a while. */
  async connect(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.get('/state', {})));
  }

  /** The first answer of that level: on a machine that stands still for a while one may be of a later one. */
  askUntil(level: number, product: string | (() => string), user: string): Promise<Answer> {
    return until(
      async () => {
        const id = typeof product === 'string' ? product : product();
        const answer = await this.ask(id, user);
        return answer.level === level ? answer : undefined;
      },
      { timeoutMs: 20_000, what: `an answer of level ${level}` },
    );
  }

  async state(): Promise<PageState> {
    return (await (await fetch(`${this.url}/state`)).json()) as PageState;
  }

  async turn(switches: Readonly<Record<string, string>>, expected = 200): Promise<unknown> {
    const response = await fetch(`${this.url}/switches`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(switches),
    });
    const body: unknown = await response.json();
    if (response.status !== expected)
      throw new Error(`${response.status}: ${JSON.stringify(body)}`);
    return body;
  }

  stop(): Promise<number | NodeJS.Signals | null> {
    this.agent.destroy();
    return this.sample.stop();
  }

  private get(
    path: string,
    headers: Readonly<Record<string, string>>,
  ): Promise<{ readonly response: IncomingMessage; readonly text: string }> {
    const { agent } = this;
    return new Promise((resolve, reject) => {
      const asked = request(this.url + path, { agent, headers }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.once('close', () => {
          if (response.complete) resolve({ response, text });
          else reject(new Error('the answer was cut off'));
        });
      });
      asked.once('error', reject);
      asked.end();
    });
  }
}

function answerOf({ statusCode, headers }: IncomingMessage, text: string): Omit<Answer, 'tookMs'> {
  const [, level = '0'] = /^level=(\d); /.exec(String(headers['x-degraded'] ?? '')) ?? [];
  return { status: statusCode!, level: Number(level), headers, body: JSON.parse(text) as Product };
}
