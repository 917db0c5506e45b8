import { Agent, request, type IncomingHttpHeaders } from 'node:http';
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
  readonly deadlineMs: number;
  readonly vitals: VitalFigures;
}

/** The sample of the product page, and what callers, operators and onlookers see of it. */
export class ProductPage {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 200 });
  private unknown = 1000;

  private constructor(
    private readonly sample: RunningSample,
    readonly url: string,
  ) {}

  static async start(
    env: Readonly<Record<string, string>> & { PORT: string },
  ): Promise<ProductPage> {
    const sample = await RunningSample.start('06-product-page', env, 'the way back');
    return new ProductPage(sample, `http://localhost:${env.PORT}`);
  }

  get written(): string {
    return this.sample.written;
  }

  /** A product that nobody has asked for. */
  unknownProduct(): string {
    return String(this.unknown++);
  }

  /** Rejects unless a whole answer came. */
  ask(product: string, user: string): Promise<Answer> {
    const { agent } = this;
    const startedMs = performance.now();
    return new Promise((resolve, reject) => {
      const headers = { 'x-user': user };
      const asked = request(`${this.url}/products/${product}`, { agent, headers }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.once('close', () => {
          const tookMs = performance.now() - startedMs;
          if (!response.complete) return reject(new Error('the answer was cut off'));
          try {
            resolve({ ...answerOf(response, text), tookMs });
          } catch (error) {
            reject(error as Error);
          }
        });
      });
      asked.once('error', reject);
      asked.end();
    });
  }

  /** The first answer of that level. */
  askUntil(level: number, product: string, user: string): Promise<Answer> {
    return until(
      async () => {
        const answer = await this.ask(product, user);
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
}

function answerOf(
  { statusCode, headers }: { statusCode?: number; headers: IncomingHttpHeaders },
  text: string,
): Omit<Answer, 'tookMs'> {
  const [, level = '0'] = /^level=(\d); /.exec(String(headers['x-degraded'] ?? '')) ?? [];
  return { status: statusCode!, level: Number(level), headers, body: JSON.parse(text) as Product };
}
