/** A text, a hash, a list or a sorted set. */
type StoredValue = string | Map<string, string> | string[] | Map<string, number>;

interface StoredKey {
  readonly value: StoredValue;
  /** When it is forgotten, in milliseconds; never, unless something says so. */
  endsMs: number;
}

type Texts = readonly string[];

/** Keys with their values, by the clock of the server, and the commands that lib/stores/redis has for them. */
export class PlainKeys {
  private readonly kept = new Map<string, StoredKey>();

  constructor(private readonly nowMs: () => number) {}

  copy(): PlainKeys {
    const copy = new PlainKeys(this.nowMs);
    for (const [key, { value, endsMs }] of this.kept) {
      copy.kept.set(key, { value: structuredClone(value), endsMs });
    }
    return copy;
  }

  /** Undefined if there is no such command. */
  command(name: string): ((args: Texts) => unknown) | undefined {
    return Object.hasOwn(this.commands, name) ? this.commands[name] : undefined;
  }

  get(key: string): string | null {
    return (this.valueOf(key) as string | undefined) ?? null;
  }

  set(key: string, text: string, ttlMs = Infinity): void {
    this.kept.set(key, { value: text, endsMs: this.nowMs() + ttlMs });
  }

  remove(key: string): number {
    const isThere = this.valueOf(key) !== undefined;
    this.kept.delete(key);
    return isThere ? 1 : 0;
  }

  /** The hash at a key, which is there from now on; likewise the others. */
  hash(key: string): Map<string, string> {
    return this.made(key, () => new Map<string, string>());
  }

  list(key: string): string[] {
    return this.made(key, (): string[] => []);
  }

  scores(key: string): Map<string, number> {
    return this.made(key, () => new Map<string, number>());
  }

  expire(key: string, ttlMs: number): void {
    const kept = this.kept.get(key);
    if (kept !== undefined) kept.endsMs = this.nowMs() + ttlMs;
  }

  private readonly commands: Readonly<Record<string, (args: Texts) => unknown>> = {
    ping: () => 'PONG',
    get: ([key]) => this.get(key!),
    mget: (keys) => keys.map((key) => this.get(key)),
    getrange: ([key, first, last]) => {
      return (this.get(key!) ?? '').slice(Number(first), Number(last) + 1);
    },
    set: ([key, text, , ttlMs]) => {
      this.set(key!, text!, ttlMs === undefined ? Infinity : Number(ttlMs));
      return 'OK';
    },
    del: (keys) => keys.reduce((sum, key) => sum + this.remove(key), 0),
    pexpire: ([key, ttlMs]) => this.expire(key!, Number(ttlMs)),
    hget: ([key, field]) => this.hash(key!).get(field!) ?? null,
    hmget: ([key, ...fields]) => fields.map((field) => this.hash(key!).get(field) ?? null),
    hgetall: ([key]) => Object.fromEntries(this.hash(key!)),
    hset: ([key, field, text]) => void this.hash(key!).set(field!, text!),
    hdel: ([key, ...fields]) => fields.filter((field) => this.hash(key!).delete(field)).length,
    lrange: ([key, first, last]) => this.list(key!).slice(Number(first), Number(last) + 1),
    zrem: ([key, ...members]) => members.filter((one) => this.scores(key!).delete(one)).length,
  };

  private made<T extends StoredValue>(key: string, make: () => T): T {
    const found = this.valueOf(key) as T | undefined;
    if (found !== undefined) return found;
    const value = make();
    this.kept.set(key, { value, endsMs: Infinity });
    return value;
  }

  private valueOf(key: string): StoredValue | undefined {
    const kept = this.kept.get(key);
    if (kept === undefined || kept.endsMs > this.nowMs()) return kept?.value;
    this.kept.delete(key);
    return undefined;
  }
}
