/**
 * Something else than a denial went wrong in the guard, on a transport where Nest would not survive
 * the plain error: the filter that is bound with the guard answers for it.
 */
export class GuardFailure extends Error {
  constructor(override readonly cause: unknown) {
    super('the rate limit could not be decided', { cause });
    this.name = 'GuardFailure';
  }
}
