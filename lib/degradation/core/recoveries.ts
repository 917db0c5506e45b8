import { type Cancel, type Clock } from '../../common/clock.js';
import { InvalidArgumentError } from '../../common/errors.js';
import { EventHub } from '../../common/event-hub.js';
import { type HealthProbe, type RecoveryChange, type RecoveryStats } from './contract.js';
import {
  MOST_RESOURCES,
  type DegradationSettings,
  type DegradedResourceSettings,
} from './options.js';
import { Recovery, type RecoveryDeps } from './recovery.js';

/** The one that names beyond the bound share. */
export const OTHER_RESOURCES = '(other)';
const TICK_MS = 250;

export type RecoveriesDeps = Pick<RecoveryDeps, 'nodeId' | 'lease' | 'jitter'> & {
  readonly figures: DegradationSettings;
};

interface RecoveryEvents {
  state: RecoveryChange;
}

/** The resources of a process, by name, and the one ticker that they share. */
export class Recoveries {
  private readonly byName = new Map<string, Recovery>();
  private readonly active = new Set<Recovery>();
  private readonly events = new EventHub<RecoveryEvents>(['state']);
  private figures: DegradationSettings;
  private stopTicker: Cancel | undefined;
  private closed = false;

  constructor(
    private readonly settings: RecoveriesDeps,
    private readonly clock: Clock,
  ) {
    this.figures = settings.figures;
    for (const name of settings.figures.resources.keys()) this.of(name);
  }

  /** The recovery of that name, made when it is first needed. */
  of(name: string, { probe }: { readonly probe?: HealthProbe } = {}): Recovery {
    if (typeof name !== 'string' || name === '') {
      throw new InvalidArgumentError('resource', name, 'a text that is not empty');
    }
    let recovery = this.byName.get(name);
    if (recovery === undefined) {
      const isOther = this.byName.size >= MOST_RESOURCES && name !== OTHER_RESOURCES;
      recovery = isOther ? this.of(OTHER_RESOURCES) : this.add(name);
    }
    if (probe !== undefined && recovery.resource === name) recovery.probe = probe;
    return recovery;
  }

  /** Those that there are. */
  names(): string[] {
    return [...this.byName.keys()];
  }

  on(event: 'state', listener: (change: RecoveryChange) => void): () => void {
    return this.events.on(event, listener);
  }

  stats(): RecoveryStats[] {
    return [...this.byName.values()].map((recovery) => recovery.stats());
  }

  /** Settings that were checked: the result puts them into force, and cannot fail. */
  prepare(figures: DegradationSettings): () => void {
    return () => {
      const before = this.figures;
      this.figures = figures;
      for (const [name, recovery] of this.byName) {
        recovery.use(this.figuresOf(name));
        setMode(recovery, before.resources.get(name), figures.resources.get(name));
      }
      for (const name of figures.resources.keys()) this.of(name);
    };
  }

  close(): void {
    this.closed = true;
    this.stopTicker?.();
    for (const recovery of this.byName.values()) recovery.stop();
  }

  private add(resource: string): Recovery {
    const { nodeId, lease, jitter } = this.settings;
    const onChange = (change: RecoveryChange): void => this.changed(recovery, change);
    const figures = this.figuresOf(resource);
    const recovery = new Recovery(
      { resource, figures, nodeId, lease, jitter, onChange },
      this.clock,
    );
    this.byName.set(resource, recovery);
    setMode(recovery, undefined, this.figures.resources.get(resource));
    return recovery;
  }

  private figuresOf(name: string): DegradedResourceSettings['recovery'] {
    return this.figures.resources.get(name)?.recovery ?? this.figures.recovery;
  }

  private changed(recovery: Recovery, change: RecoveryChange): void {
    if (recovery.isActive) this.active.add(recovery);
    else this.active.delete(recovery);
    this.keepTicking();
    this.events.emit('state', change);
  }

  /** Only while a resource is on its way: all is well nearly always. */
  private keepTicking(): void {
    if (this.active.size === 0 || this.closed) {
      this.stopTicker?.();
      this.stopTicker = undefined;
      return;
    }
    this.stopTicker ??= this.clock.every(TICK_MS, () => {
      for (const recovery of [...this.active]) recovery.tick();
    });
  }
}

/** Only what the options say anew: an operator's word by hand outlives a change of something else. */
function setMode(
  recovery: Recovery,
  before: DegradedResourceSettings | undefined,
  after: DegradedResourceSettings | undefined,
): void {
  const [was, is] = [before?.mode ?? 'auto', after?.mode ?? 'auto'];
  if (was === is && before?.level === after?.level) return;
  switch (is) {
    case 'forced':
      return recovery.force(after?.level);
    case 'disabled':
      return recovery.disable();
    case 'observe':
      return recovery.observe();
    case 'auto':
      return recovery.resume();
  }
}
