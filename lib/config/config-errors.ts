import { errorText, RateLimitError } from '../common/errors.js';
import { type StagedName } from '../stores/config-store.js';

/** Another change came first. Read the configuration again, and decide again. */
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

/** As many updates wait for their time as may. */
export class TooManyStagedError extends RateLimitError {
  readonly code = 'TOO_MANY_STAGED';

  constructor(
    readonly most: number,
    staged: readonly StagedName[],
  ) {
    super(`${most} updates wait already; cancel one of ${idsIn(staged)}, or wait until it is due`);
  }
}

/** No update of that id waits: it is in force by now, was cancelled, or never was. */
export class UnknownStagedError extends RateLimitError {
  readonly code = 'UNKNOWN_STAGED';

  constructor(
    readonly id: number,
    staged: readonly StagedName[],
  ) {
    const there = staged.length === 0 ? 'none waits' : `there is ${idsIn(staged)}`;
    super(`no update ${id} waits; ${there}`);
  }
}

const idsIn = (staged: readonly StagedName[]): string => staged.map(({ id }) => id).join(', ');

/** The document is valid, but a part of this process cannot work with it. */
export class ConfigRefusedError extends RateLimitError {
  readonly code = 'CONFIG_REFUSED';

  constructor(cause: unknown) {
    super(`the configuration was refused: ${errorText(cause)}`, { cause });
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
