import { StoreUnavailableError } from '../../lib/common/errors.js';
import { type ConfigSettings } from '../../lib/config/config-settings.js';
import {
  type ConfigChange,
  type ConfigConsumer,
  type ConfigRefusal,
  type ConfigSnapshot,
} from '../../lib/config/rate-limit-config.js';
import { VersionedConfig } from '../../lib/config/versioned-config.js';
import {
  type ConfigDraft,
  type ConfigStore,
  type StoredConfig,
  type WrittenConfig,
} from '../../lib/stores/config-store.js';
import { MemoryConfig } from '../../lib/stores/memory/memory-config.js';
import { ManualClock, settle } from '../support/manual-clock.js';

export const POLL_MS = 5000;
/** Later than any poll. */
export const ONE_POLL_MS = POLL_MS * 1.2;

/** A document with one policy that says how many requests a second it lets through. */
export const limitOf = (rate: number) => ({ policies: { api: { rate: `${rate}/s` } } });

export const rateOf = ({ document }: ConfigSnapshot): unknown => document.policies?.api?.rate;

type WriteArguments = Parameters<ConfigStore['write']> extends [unknown, ...infer M] ? M : never;

/** One node's way to the shared store, on which everything can go wrong. */
export class Wire implements ConfigStore {
  /** The fate of a call; the answer of a write can also be lost after it was carried out. */
  readFate: () => 'ok' | 'fail' = () => 'ok';
  writeFate: () => 'ok' | 'fail' | 'lose' = () => 'ok';
  /** The number of times that a hint arrives. */
  hintFate: () => number = () => 1;
  isDown = false;
  /** An answer that was given arrives when this is over. */
  answersAfter: Promise<unknown> = Promise.resolve();
  answersUnderway = 0;
  reads = 0;
  readsUnderway = 0;
  mostReadsUnderway = 0;
  private late: (() => void)[] = [];

  constructor(private readonly store: ConfigStore) {}

  async read(known?: string): Promise<StoredConfig> {
    this.reads++;
    this.mostReadsUnderway = Math.max(this.mostReadsUnderway, ++this.readsUnderway);
    try {
      await settle();
      this.mustBeUp(this.readFate());
      const answer = await this.store.read(known);
      this.answersUnderway++;
      await this.answersAfter;
      this.answersUnderway--;
      return answer;
    } finally {
      this.readsUnderway--;
    }
  }

  async write(draft: ConfigDraft, ...more: WriteArguments): Promise<WrittenConfig> {
    const fate = this.writeFate();
    this.mustBeUp(fate);
    const written = await this.store.write(draft, ...more);
    if (fate === 'lose') throw new StoreUnavailableError('the answer was lost');
    return written;
  }

  async history(count: number) {
    this.mustBeUp('ok');
    return this.store.history(count);
  }

  async acknowledge(...args: Parameters<ConfigStore['acknowledge']>) {
    this.mustBeUp('ok');
    return this.store.acknowledge(...args);
  }

  leave(): void {
    this.store.leave();
  }

  withdraw(node: string) {
    return this.store.withdraw(node);
  }

  acknowledgements() {
    return this.store.acknowledgements();
  }

  subscribe(hint: (revision?: number) => void): Promise<() => void> {
    return this.store.subscribe((revision) => {
      const times = this.isDown ? 0 : this.hintFate();
      for (let i = 0; i < times; i++) {
        if (i === 0) hint(revision);
        else this.late.push(() => hint(revision));
      }
    });
  }

  /** Delivers hints that were held back. */
  tellLate(): void {
    for (const tell of this.late.splice(0)) tell();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  private mustBeUp(fate: string): void {
    if (this.isDown || fate === 'fail') throw new StoreUnavailableError('no connection');
  }
}

/** A process of the fleet, and all that it said and did. */
export class FleetNode {
  readonly config: VersionedConfig;
  readonly warnings: string[] = [];
  readonly errors: string[] = [];
  readonly infos: string[] = [];
  readonly changes: ConfigChange[] = [];
  readonly refusals: ConfigRefusal[] = [];
  /** Every snapshot that was used, in order. */
  readonly used: ConfigSnapshot[] = [];
  /** Says of a snapshot why this process cannot use it. */
  objection: (next: ConfigSnapshot) => string | undefined = () => undefined;

  constructor(
    readonly name: string,
    readonly wire: Wire,
    clock: ManualClock,
    more: Partial<ConfigSettings> = {},
  ) {
    const consumer: ConfigConsumer = {
      prepare: (next) => {
        const objection = this.objection(next);
        if (objection !== undefined) throw new Error(objection);
        return () => this.used.push(next);
      },
    };
    this.config = new VersionedConfig({
      ...{ store: wire, nodeId: name, clock, pollMs: POLL_MS, consumers: [consumer] },
      report: {
        info: (text) => this.infos.push(text),
        warn: (text) => this.warnings.push(text),
        error: (text) => this.errors.push(text),
      },
      ...more,
    });
    this.config.changes$.subscribe((change) => this.changes.push(change));
    this.config.refused$.subscribe((refusal) => this.refusals.push(refusal));
  }

  get revision(): number {
    return this.config.current().revision;
  }

  get rate(): unknown {
    return rateOf(this.config.current());
  }
}

/** Some processes on one store and one clock. */
export class Fleet {
  readonly clock = new ManualClock();
  readonly nodes: FleetNode[] = [];
  store = new MemoryConfig(this.clock);

  /** A process that has not started yet. */
  node(name: string, more: Partial<ConfigSettings> = {}): FleetNode {
    const node = new FleetNode(name, new Wire(this.lasting), this.clock, more);
    this.nodes.push(node);
    return node;
  }

  async start(name: string, more: Partial<ConfigSettings> = {}): Promise<FleetNode> {
    const node = this.node(name, more);
    await node.config.start();
    return node;
  }

  /** The store loses everything, and who listened to it hears no more. */
  flush(): void {
    this.store = new MemoryConfig(this.clock);
  }

  async settle(): Promise<void> {
    // Each exchange with the store is a turn or two of the event loop.
    for (let turn = 0; turn < 20; turn++) await settle();
  }

  async poll(): Promise<void> {
    await this.clock.advanceAsync(ONE_POLL_MS);
    await this.settle();
  }

  async close(): Promise<void> {
    for (const { config } of this.nodes) await config.close();
  }

  /** Leads to whatever the store is at the moment. */
  private readonly lasting: ConfigStore = {
    read: (known) => this.store.read(known),
    write: (...args) => this.store.write(...args),
    history: (count) => this.store.history(count),
    acknowledge: (...args) => this.store.acknowledge(...args),
    leave: () => this.store.leave(),
    withdraw: (node) => this.store.withdraw(node),
    acknowledgements: () => this.store.acknowledgements(),
    subscribe: (hint) => this.store.subscribe(hint),
    close: () => Promise.resolve(),
  };
}
