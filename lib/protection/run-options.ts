import { InvalidArgumentError } from '../common/errors.js';
import { rejectUnknown } from '../common/validate.js';
import { DeadlineExceededError } from './errors.js';
import { Run, type RunOptions } from './run.js';

const KNOWN_OPTIONS: readonly (keyof RunOptions)[] = [
  ...(['signal', 'parent', 'deadlineMs', 'label', 'value'] as const),
];

/** What the caller asks for stands beside what the resource allows: the shorter time holds. */
export function takeOptions(run: Run, options: RunOptions, now: number): void {
  rejectUnknown('run', options, KNOWN_OPTIONS);
  const { deadlineMs, parent, signal, value } = options;
  run.options = options;
  if (value !== undefined) run.resource.checkValue(value);
  if (deadlineMs !== undefined) {
    if (!(deadlineMs > 0)) {
      throw new InvalidArgumentError('run.deadlineMs', deadlineMs, 'milliseconds above 0');
    }
    bound(run, now + deadlineMs * 1000);
  }
  if (parent instanceof Run) bound(run, parent.dueAt);
  else if (parent !== undefined) bound(run, now + parent.remainingMs * 1000);
  listen(run, signal, parent instanceof Run ? parent.callerSignal : parent?.signal);
  if (run.dueAt <= now) throw new DeadlineExceededError(run.resource.name, run.deadlineMs, false);
}

function bound(run: Run, dueAt: number): void {
  if (dueAt >= run.dueAt) return;
  run.dueAt = dueAt;
  run.isDueByCaller = true;
}

function listen(run: Run, own: AbortSignal | undefined, parents: AbortSignal | undefined): void {
  const signal =
    own !== undefined && parents !== undefined ? AbortSignal.any([own, parents]) : (own ?? parents);
  if (signal === undefined) return;
  run.callerSignal = signal;
  signal.throwIfAborted();
  run.listen(signal);
}
