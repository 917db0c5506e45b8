import { type Clock } from '../common/clock.js';
import { InvalidArgumentError } from '../common/errors.js';
import { type ConfigStore } from '../stores/index.js';
import {
  type ConfigConsumer,
  type OwnLayer,
  type RollbackOptions,
  type UpdateOptions,
} from './rate-limit-config.js';
import { type Report } from './report.js';

export interface ConfigSettings {
  readonly store: ConfigStore;
  readonly nodeId: string;
  readonly clock: Clock;
  readonly report: Report;
  /** What the code of this process says, and what its file does; without one it has no opinion. */
  readonly code?: OwnLayer;
  readonly file?: OwnLayer;
  readonly consumers?: readonly ConfigConsumer[];
  /** How often the store is read though nothing hints at a change; ±20 %. Default: 5 s. */
  readonly pollMs?: number;
  /** For tools: changes the configuration, but is no node that one would ask for its revision. */
  readonly isVisitor?: boolean;
  readonly random?: () => number;
}

export const DEFAULT_POLL_MS = 5000;
const LONGEST_NAME = 200;
/** The last instant that a Date can name. */
const LAST_MS = 8.64e15;

export function checkChangeOptions({ expectedRevision, by }: RollbackOptions): void {
  const isRevision = Number.isSafeInteger(expectedRevision) && expectedRevision! >= 0;
  if (expectedRevision !== undefined && !isRevision) {
    throw new InvalidArgumentError('expectedRevision', expectedRevision, 'a whole number');
  }
  const isName = typeof by === 'string' && by.length > 0 && by.length <= LONGEST_NAME;
  if (by !== undefined && !isName) {
    throw new InvalidArgumentError('by', by, `a name of 1 to ${LONGEST_NAME} characters`);
  }
}

/** 0 for at once. */
export function effectiveAtMsOf({ effectiveAt }: UpdateOptions): number {
  if (effectiveAt === undefined) return 0;
  const ms = effectiveAt instanceof Date ? effectiveAt.getTime() : effectiveAt;
  if (typeof ms !== 'number' || !(ms >= 0) || ms > LAST_MS) {
    throw new InvalidArgumentError(
      'effectiveAt',
      effectiveAt,
      'a date, or milliseconds since 1970',
    );
  }
  return Math.floor(ms);
}
