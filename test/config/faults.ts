import { InvalidConfigError } from '../../lib/common/errors.js';

/** The sentences of the error that a check throws; none if it passes. */
export function faultsOf(check: () => unknown): string[] {
  try {
    check();
    return [];
  } catch (error) {
    if (!(error instanceof InvalidConfigError)) throw error;
    return error.issues.map(({ message }) => message);
  }
}
