import { type Protection } from 'nestjs-weir';

export class HttpError extends Error {
  constructor(readonly status: number) {
    super(`the stock service answered ${status}`);
  }
}

/** For the option `isFailure`: "not found" is an answer like any other, "too many" is none at all. */
export function isFailure(error: unknown): boolean | 'neutral' {
  if (!(error instanceof HttpError)) return true;
  return error.status === 429 ? 'neutral' : error.status >= 500;
}

export class StockClient {
  constructor(
    private readonly url: string,
    private readonly protection: Protection,
  ) {}

  /** `signal` is that of the request that wants to know: whoever has left needs no answer. */
  stockOf(id: string, signal?: AbortSignal): Promise<number> {
    const work = async (run: { readonly signal: AbortSignal }): Promise<number> => {
      const response = await fetch(`${this.url}/stock/${id}`, { signal: run.signal });
      if (!response.ok) {
        // A body that nobody reads would keep its connection.
        await response.body?.cancel();
        throw new HttpError(response.status);
      }
      return Number(await response.text());
    };
    return this.protection.run('stock', work, { signal, label: id });
  }
}
