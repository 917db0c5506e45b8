import { createHash, createHmac } from 'node:crypto';
import { durationMs, type Duration } from '../../../common/duration.js';
import { InvalidArgumentError } from '../../../common/errors.js';
import { oneOf, plainObject, rejectUnknown, withoutUndefined } from '../../../common/validate.js';
import { keyOf, type Alert } from '../alert.js';
import { payloadOf, WEBHOOK_FORMATS, type WebhookFormat } from './payloads.js';
import { AlertNotSentError, type AlertSink } from './sink.js';

/** The initial values are the defaults. */
export class WebhookOptions {
  /** Where to, with http or https. It stands in code, as whoever edits limits must not choose whom you call. */
  url!: string;
  /** `'alertmanager'` is its API (`/api/v2/alerts`), `'alertmanager-webhook'` what it sends itself. */
  format: WebhookFormat = 'weir';
  /** Signs the body: `x-weir-signature: sha256=…`, an HMAC in hex. */
  secret?: string;
  headers: Readonly<Record<string, string>> = {};
  timeout: Duration = '5s';
}

const KNOWN = [...Object.keys(new WebhookOptions()), 'url', 'secret'];
const LONGEST_BODY = 65_536;
const REPEAT_MS = 60_000;
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]{1,256}$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]{0,4096}$/;
/** Worth asking again, beside 5xx. */
const LATER = [408, 429];

/** Sends alerts to an address, for `monitor.sinks`. */
export function webhook(input: Partial<WebhookOptions> & { url: string }): AlertSink {
  return new Webhook(checkWebhook(input));
}

class Webhook implements AlertSink {
  readonly name: string;
  readonly repeatMs?: number;
  private readonly ending = new AbortController();
  private readonly timeoutMs: number;

  constructor(private readonly options: WebhookOptions) {
    // The path may be the secret of it, as Slack's is.
    this.name = `webhook ${new URL(options.url).host}`;
    this.timeoutMs = durationMs(options.timeout, 'webhook.timeout');
    if (options.format === 'alertmanager') this.repeatMs = REPEAT_MS;
  }

  async send(batch: readonly Alert[]): Promise<void> {
    const body = JSON.stringify(payloadOf(this.options.format, batch, Date.now()));
    if (Buffer.byteLength(body) <= LONGEST_BODY || batch.length === 1) {
      return this.call(body, batch);
    }
    const half = Math.ceil(batch.length / 2);
    await this.send(batch.slice(0, half));
    await this.send(batch.slice(half));
  }

  close(): void {
    this.ending.abort();
  }

  private async call(body: string, batch: readonly Alert[]): Promise<void> {
    const { url, secret, headers } = this.options;
    const signature = secret && createHmac('sha256', secret).update(body).digest('hex');
    const response = await fetch(url, {
      ...{ method: 'POST', body, redirect: 'manual' },
      headers: {
        'content-type': 'application/json',
        'user-agent': 'nestjs-weir',
        ...headers,
        'idempotency-key': idempotencyKey(batch),
        ...(signature && { 'x-weir-signature': `sha256=${signature}` }),
      },
      signal: AbortSignal.any([AbortSignal.timeout(this.timeoutMs), this.ending.signal]),
    }).catch((error: unknown) => {
      throw new Error(reasonOf(error, this.timeoutMs));
    });
    // The answer has no use, but its connection has.
    await response.body?.cancel().catch(() => {});
    const { status, ok } = response;
    if (ok) return;
    if (status < 500 && !LATER.includes(status)) {
      const why = status < 400 ? 'redirects are not followed' : 'it will not be asked again';
      throw new AlertNotSentError(`answered ${status}; ${why}`, 'never');
    }
    throw new AlertNotSentError(`answered ${status}`, { afterMs: retryAfterMs(response) });
  }
}

/** The key of a single alert is its own; that of several is made of theirs. */
function idempotencyKey(batch: readonly Alert[]): string {
  const keys = batch.map(keyOf);
  if (keys.length === 1) return keys[0]!;
  return createHash('sha256').update(keys.join(' ')).digest('hex');
}

function retryAfterMs({ headers }: Response): number {
  const after = headers.get('retry-after');
  if (after === null) return 0;
  const seconds = Number(after);
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(after) - Date.now();
  return Number.isFinite(ms) ? Math.max(ms, 0) : 0;
}

/** Only what kind of failure it was: messages of the network may carry the address. */
function reasonOf(error: unknown, timeoutMs: number): string {
  const { name, cause } = error as Error;
  if (name === 'TimeoutError') return `no answer within ${timeoutMs} ms`;
  const code = (cause as { readonly code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? `not reached (${code})` : 'not reached';
}

function checkWebhook(input: Partial<WebhookOptions>): WebhookOptions {
  plainObject('webhook', input, 'an object');
  rejectUnknown('webhook', input, KNOWN);
  const options = Object.assign(new WebhookOptions(), withoutUndefined(input));
  checkUrl(options.url);
  oneOf('webhook.format', options.format, WEBHOOK_FORMATS);
  durationMs(options.timeout, 'webhook.timeout');
  const { secret, headers } = options;
  if (secret !== undefined && (typeof secret !== 'string' || secret === '')) {
    throw new InvalidArgumentError('webhook.secret', undefined, 'a text that is not empty');
  }
  plainObject('webhook.headers', headers, 'an object of headers by name');
  for (const [name, value] of Object.entries(headers) as [string, unknown][]) {
    if (HEADER_NAME.test(name) && typeof value === 'string' && HEADER_VALUE.test(value)) continue;
    throw new InvalidArgumentError(`webhook.headers.${name}`, undefined, 'a text of one line');
  }
  return options;
}

/** The address is not repeated: it may hold a secret. */
function checkUrl(url: unknown): void {
  const parsed = typeof url === 'string' && URL.canParse(url) ? new URL(url) : undefined;
  const isHttp = parsed?.protocol === 'http:' || parsed?.protocol === 'https:';
  if (isHttp && parsed.username === '' && parsed.password === '') return;
  const expected = 'an address with http or https, without user and password (use headers)';
  throw new InvalidArgumentError(
    'webhook.url',
    undefined,
    expected,
    `webhook.url: expected ${expected}`,
  );
}
