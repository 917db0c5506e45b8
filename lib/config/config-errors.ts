import { RateLimitError } from '../common/errors.js';

/** Somebody else has changed the configuration in the meantime. Read it again, and decide again. */
export class ConfigConflictError extends RateLimitError {
  readonly code = 'CONFIG_CONFLICT';

  constructor(
    readonly expectedRevision: number,
    readonly actualRevision: number,
  ) {
    super(
      `the configuration is at revision ${actualRevision}, not ${expectedRevision}; nothing was changed`,
    );
  }
}

/** A revision waits for its time. Until then only a rollback can be written. */
export class ConfigStagedError extends RateLimitError {
  readonly code = 'CONFIG_STAGED';

  constructor(
    readonly revision: number,
    readonly effectiveAtMs: number,
  ) {
    super(
      `revision ${revision} takes effect at ${new Date(effectiveAtMs).toISOString()}; ` +
        'roll it back, or wait until then',
    );
  }
}

/** The document is valid, but a part of this process cannot work with it. */
export class ConfigRefusedError extends RateLimitError {
  readonly code = 'CONFIG_REFUSED';

  constructor(cause: unknown) {
    super(`the configuration was refused: ${inWords(cause)}`, { cause });
  }
}

/** The revisions that can be gone back to. */
export interface RevisionSpan {
  readonly oldest: number;
  readonly newest: number;
}

/** Of a history, newest first. */
export function spanOf(history: readonly { revision: number }[]): RevisionSpan | undefined {
  const [newest, oldest] = [history[0], history.at(-1)];
  return newest && oldest && { oldest: oldest.revision, newest: newest.revision };
}

/** The history does not go back to that revision, or there was none of that number. */
export class UnknownRevisionError extends RateLimitError {
  readonly code = 'UNKNOWN_REVISION';

  constructor(
    readonly revision: number,
    span?: RevisionSpan,
  ) {
    const there = span === undefined ? '' : `, which has ${span.oldest} to ${span.newest}`;
    super(`revision ${revision} is not in the history${there}`);
  }
}

export const inWords = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
