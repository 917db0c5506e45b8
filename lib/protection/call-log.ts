import { type EventHub } from '../common/event-hub.js';
import { type ProtectionEvents } from './events.js';
import { type ResourceSettings } from './resource-settings.js';
import { type ResourceCounts } from './resource-stats.js';
import { type Run } from './run.js';

const MAX_LABEL = 200;

/** Tells of calls that take long, each of them once in each way. */
export class CallLog {
  constructor(
    private readonly resource: string,
    private readonly counts: ResourceCounts,
    private readonly events: EventHub<ProtectionEvents>,
  ) {}

  /** `micros` is how long the work has taken, or takes so far. */
  slow(run: Run, micros: number, { slow }: ResourceSettings): void {
    if (slow === undefined || run.wasSlow) return;
    run.wasSlow = true;
    const count = ++this.counts.slow;
    if ((count - 1) % slow.sampleEvery !== 0 || !this.events.has('slow')) return;
    const label = labelOf(run, slow.maxLabel);
    this.events.emit('slow', { resource: this.resource, ms: inMs(micros), label, count });
  }

  held(run: Run, micros: number, { slow }: ResourceSettings): void {
    this.counts.held++;
    if (!this.events.has('held')) return;
    const label = labelOf(run, slow?.maxLabel ?? MAX_LABEL);
    this.events.emit('held', { resource: this.resource, ms: inMs(micros), label });
  }
}

const inMs = (micros: number): number => Math.round(micros / 1000);

/** A label that cannot be made must not cost the call its answer. */
function labelOf({ options }: Run, longest: number): string | undefined {
  const label = options?.label;
  try {
    const text = typeof label === 'function' ? label() : label;
    if (text === undefined) return undefined;
    return text.length > longest ? `${text.slice(0, longest)}…` : text;
  } catch (error) {
    return `(no label: ${String(error)})`;
  }
}
