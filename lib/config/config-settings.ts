import { type Clock } from '../common/clock.js';
import { InvalidArgumentError } from '../common/errors.js';
import { plainObject, rejectUnknown } from '../common/validate.js';
import { type ConfigStore } from '../stores/config-store.js';
import {
  type ConfigConsumer,
  type OwnConfig,
  type RollbackOptions,
  type UpdateOptions,
} from './rate-limit-config.js';
import { type Report } from '../common/report.js';

export interface ConfigSettings extends OwnConfig {
  readonly store: ConfigStore;
  readonly nodeId: string;
  /** The service whose layers this process brings along. Default `'default'`. */
  readonly service?: string;
  readonly clock: Clock;
  readonly report: Report;
  readonly consumers?: readonly ConfigConsumer[];
  /** How often the store is read though nothing hints at a change; ±20 %. Default: 5 s. */
  readonly pollMs?: number;
  /** For tools: changes the configuration, but is no node that one would ask for its revision. */
  readonly isVisitor?: boolean;
  readonly random?: () => number;
}

export const DEFAULT_POLL_MS = 5000;
const LONGEST_NAME = 200;
/** It stands in logs and on screens: nothing that steers a terminal or begins a line. */
const NAME = /^[^\p{Cc}\p{Zl}\p{Zp}]+$/u;
/** The last instant that a Date can name. */
const LAST_MS = 8.64e15;

const ROLLBACK_OPTIONS = ['expectedRevision', 'by'];
const UPDATE_OPTIONS = [...ROLLBACK_OPTIONS, 'effectiveAt', 'allowEmpty'];

export function checkUpdate(patch: unknown, options: UpdateOptions): void {
  mustBeGiven('patch', patch);
  checkOptions(options, UPDATE_OPTIONS);
}

/** Nothing would pass for something that changes nothing. */
export function mustBeGiven(field: string, value: unknown): void {
  if (value !== undefined && value !== null) return;
  throw new InvalidArgumentError(field, value, 'an object');
}

export const checkRollbackOptions = (options: RollbackOptions): void =>
  checkOptions(options, ROLLBACK_OPTIONS);

function checkOptions(options: RollbackOptions, known: readonly string[]): void {
  plainObject('options', options, 'an object');
  rejectUnknown('options', options, known);
  const { expectedRevision, by } = options;
  const isRevision = Number.isSafeInteger(expectedRevision) && expectedRevision! >= 0;
  if (expectedRevision !== undefined && !isRevision) {
    throw new InvalidArgumentError('expectedRevision', expectedRevision, 'a whole number');
  }
  const isName = typeof by === 'string' && NAME.test(by) && by.length <= LONGEST_NAME;
  if (by !== undefined && !isName) {
    const expected = `a name of 1 to ${LONGEST_NAME} characters, on one line`;
    throw new InvalidArgumentError('by', by, expected);
  }
}

export function checkRevision(revision: number, field = 'revision'): void {
  if (Number.isSafeInteger(revision) && revision > 0) return;
  throw new InvalidArgumentError(field, revision, 'a whole number above 0');
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
