import { hashOf } from '../document/json.js';
import { checkLayer, type ConfigLayer } from '../schema/check.js';

/** Where a layer of the configuration comes from: a file, a configuration service, a database… */
export interface ConfigSource {
  /** The layer as it is now, as plain JSON. Rejects if it cannot be read; the last good one stays. */
  read(): Promise<unknown>;
  /** Calls `changed` when it may be worth reading again. Returns a function that ends this. */
  watch?(changed: () => void): () => void;
}

export interface SourceLayerOptions {
  /** The name of the source in messages. */
  readonly name?: string;
  /** Whether an empty source is taken at its word. */
  readonly allowEmpty?: boolean;
  /** A layer with another content. */
  readonly onChange?: (layer: ConfigLayer) => void;
  /** The source cannot be read, or its layer is wrong. Once for each fault that is new. */
  readonly onFault?: (fault: Error) => void;
}

/** The last good layer of a source. */
export class SourceLayer {
  private layer: ConfigLayer | undefined;
  private hash: string | undefined;
  private lastFault: Error | undefined;
  private unwatch: (() => void) | undefined;
  private reading: Promise<void> | undefined;
  private isStale = false;
  private isClosed = false;

  constructor(
    private readonly source: ConfigSource,
    private readonly options: SourceLayerOptions = {},
  ) {}

  /** The last good layer; undefined as long as there was none. */
  get current(): ConfigLayer | undefined {
    return this.layer;
  }

  /** Why the source is not followed at the moment. */
  get fault(): Error | undefined {
    return this.lastFault;
  }

  /** Reads for the first time and begins to watch. Never rejects: see `fault`. */
  async open(): Promise<ConfigLayer | undefined> {
    try {
      this.unwatch = this.source.watch?.(() => void this.reload());
    } catch (error) {
      this.report(error);
    }
    await this.reload();
    return this.layer;
  }

  /** Reads again, one read at a time; a call during a read has another one follow. */
  reload(): Promise<void> {
    this.isStale = true;
    this.reading ??= this.readWhileStale().finally(() => (this.reading = undefined));
    return this.reading;
  }

  close(): void {
    this.isClosed = true;
    this.unwatch?.();
    this.unwatch = undefined;
  }

  private async readWhileStale(): Promise<void> {
    while (this.isStale && !this.isClosed) {
      this.isStale = false;
      try {
        const { name, allowEmpty } = this.options;
        this.take(checkLayer(await this.source.read(), { name, allowEmpty }));
      } catch (error) {
        this.report(error);
      }
    }
  }

  private take(layer: ConfigLayer): void {
    if (this.isClosed) return;
    this.lastFault = undefined;
    const hash = hashOf(layer);
    if (hash === this.hash) return;
    this.layer = layer;
    this.hash = hash;
    this.options.onChange?.(layer);
  }

  private report(error: unknown): void {
    if (this.isClosed) return;
    const fault = error instanceof Error ? error : new Error(String(error));
    const isNew = fault.message !== this.lastFault?.message;
    this.lastFault = fault;
    if (isNew) this.options.onFault?.(fault);
  }
}
