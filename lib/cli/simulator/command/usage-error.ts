/** A mistake in what the user gave: told without a stack, as the code is not at fault. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
