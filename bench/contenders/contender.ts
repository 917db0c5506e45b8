/** The limit that all contenders of a case are given, each in its own words. */
export interface ContenderOptions {
  /** Decisions allowed to one key in a period; of a bucket also its burst. */
  readonly limit: number;
  readonly periodMs: number;
  /** The number of keys, for contenders that must be told. */
  readonly keys: number;
  readonly algorithm?: 'token-bucket' | 'leaky-bucket' | 'sliding-window';
  /** Of guards: false for one that writes no headers. */
  readonly headers?: boolean;
  /** Of protected resources: whether calls have one. */
  readonly deadline?: boolean;
  readonly redisUrl?: string;
  /** A prefix that sets the keys of contenders in one Redis apart. */
  readonly prefix?: string;
}

/** A limiter, reduced to what is measured. */
export interface Contender<Result = unknown> {
  /** Whether `decide` returns its result, or a promise of it, or now the one and now the other. */
  readonly answers: 'at once' | 'later' | 'at once or later';
  decide(key: string): Result | Promise<Result>;
  /** Reads a result, whichever way it came. Not part of what is timed. */
  allowed(result: Result): boolean;
  close(): void | Promise<void>;
}

export type CreateContender = (options: ContenderOptions) => Contender | Promise<Contender>;
