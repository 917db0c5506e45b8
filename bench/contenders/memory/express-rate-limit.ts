import { type Request, type Response } from 'express';
import { MemoryStore, rateLimit, type RateLimitRequestHandler } from 'express-rate-limit';
import { type Contender, type ContenderOptions } from '../contender.js';

/** All that the middleware touches of a response when it writes no headers. */
interface PlainResponse {
  statusCode: number;
  headersSent: boolean;
  writableEnded: boolean;
  status(code: number): void;
  send(body: unknown): void;
}

/**
 * The middleware with its own store, on a request and a response with nothing in them but what it
 * reads. Headers are off: no other contender renders any, and the draft-8 header of its example
 * hashes the key, which would be most of the figure.
 */
class ExpressRateLimit implements Contender<number> {
  readonly answers = 'later';

  constructor(
    private readonly middleware: RateLimitRequestHandler,
    private readonly store: MemoryStore,
  ) {}

  async decide(key: string): Promise<number> {
    const request = { headers: { 'x-user': key } };
    const response = plainResponse();
    await this.middleware(
      request as unknown as Request,
      response as unknown as Response,
      passOrThrow,
    );
    return response.statusCode;
  }

  allowed(statusCode: number): boolean {
    return statusCode === 200;
  }

  close(): void {
    this.store.shutdown();
  }
}

function plainResponse(): PlainResponse {
  return { statusCode: 200, headersSent: false, writableEnded: false, status, send };
}

function status(this: PlainResponse, code: number): void {
  this.statusCode = code;
}

function send(this: PlainResponse): void {
  this.writableEnded = true;
}

function passOrThrow(error?: unknown): void {
  if (error instanceof Error) throw error;
}

export function createExpressRateLimit(options: ContenderOptions): Contender {
  const store = new MemoryStore();
  const middleware = rateLimit({
    windowMs: options.periodMs,
    limit: options.limit,
    standardHeaders: false,
    legacyHeaders: false,
    keyGenerator: (request) => request.headers['x-user'] as string,
    store,
  });
  return new ExpressRateLimit(middleware, store);
}
