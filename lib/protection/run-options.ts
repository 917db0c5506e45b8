import { InvalidArgumentError } from '../common/errors.js';
import { rejectUnknown } from '../common/validate.js';
import { DeadlineExceededError } from './errors.js';
import { Run, type RunOptions } from './run.js';

const KNOWN_OPTIONS: readonly (keyof RunOptions)[] = [
  ...(['signal', 'parent', 'deadlineMs', 'label', 'value', 'fallback'] as const),
];

/** What the caller asks for stands beside what the resource allows: whichever ends first holds. */
export function takeOptions(run: Run, options: RunOptions, now: number): void {
  rejectUnknown('run', options, KNOWN_OPTIONS);
  run.options = options;
  if (options.value !== undefined) run.resource.checkValue(options.value);
  run.callerDueAt = callersDueAt(options, now);
  run.isDueByCaller = run.callerDueAt !== Infinity;
  const signal = callersSignal(options);
  if (signal !== undefined) {
    run.callerSignal = signal;
    signal.throwIfAborted();
    run.listen(signal);
  }
  if (run.callerDueAt <= now) {
    throw new DeadlineExceededError(run.resource.name, run.deadlineMs, false);
  }
}

/** By when the caller wants its answer; Infinity if that does not matter. */
export function callersDueAt({ deadlineMs, parent }: CallersTime, now: number): number {
  if (deadlineMs !== undefined && !(deadlineMs > 0)) {
    throw new InvalidArgumentError('run.deadlineMs', deadlineMs, 'milliseconds above 0');
  }
  const own = deadlineMs === undefined ? Infinity : now + deadlineMs * 1000;
  if (parent === undefined) return own;
  return Math.min(own, parent instanceof Run ? parent.dueAt : now + parent.remainingMs * 1000);
}

/** Its own signal, that of the run which this one is part of, or both. */
export function callersSignal({ signal, parent }: CallersTime): AbortSignal | undefined {
  const parents = parent instanceof Run ? parent.callerSignal : parent?.signal;
  if (signal === undefined || parents === undefined) return signal ?? parents;
  return AbortSignal.any([signal, parents]);
}

type CallersTime = Pick<RunOptions, 'signal' | 'parent' | 'deadlineMs'>;
