/** Where a layer of the configuration comes from: a file, a configuration service, a database… */
export interface ConfigSource {
  /** The layer as it is now, as plain JSON. Rejects if it cannot be read; the last good one stays. */
  read(): Promise<unknown>;
  /** Calls `changed` when it may be worth reading again. Returns a function that ends this. */
  watch?(changed: () => void): () => void;
}
