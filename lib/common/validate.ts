import { InvalidArgumentError, UnknownOptionError } from './errors.js';

/** The name of a policy, a tier, an app, a resource or a cluster. */
export const NAME = /^[\w.-]{1,64}$/;
export const A_NAME = 'a name of up to 64 letters, digits and _ . -';

/** Larger figures would lose exactness long before they mean anything. */
const LARGEST_FIGURE = 1e12;

export function wholeAbove0(field: string, value: unknown, largest = LARGEST_FIGURE): void {
  if (!Number.isInteger(value) || (value as number) < 1 || (value as number) > largest) {
    throw new InvalidArgumentError(field, value, `a whole number from 1 to ${largest}`);
  }
}

/** Checks the cost of a request, or of a refund, by itself; a limit may allow less. */
export function wholeCost(cost: unknown): void {
  if (Number.isInteger(cost) && (cost as number) >= 1) return;
  throw new InvalidArgumentError('cost', cost, 'a whole number above 0');
}

export function oneOf(field: string, value: unknown, choices: readonly string[]): void {
  if (!choices.includes(value as string)) {
    const list = choices.map((choice) => `'${choice}'`).join(', ');
    throw new InvalidArgumentError(field, value, `one of ${list}`);
  }
}

/** A misspelt option would otherwise be an option that silently does nothing. */
export function rejectUnknown(field: string, value: object, known: readonly string[]): void {
  for (const name of Object.keys(value)) {
    if (!known.includes(name)) throw new UnknownOptionError(`${field}.${name}`, known);
  }
}

export function plainObject(field: string, value: unknown, expectation: string): void {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw new InvalidArgumentError(field, value, expectation);
  }
}

/** Drops undefined fields, so that `{ burst: undefined }` means the default, as people expect of spread options. */
export function withoutUndefined<T extends object>(value: T): Partial<T> {
  return Object.fromEntries(
    Object.entries(value).filter(([, entry]) => entry !== undefined),
  ) as Partial<T>;
}
