/** A node's figures as it wrote them; undefined if it has written none of late. */
export interface BoardEntry {
  readonly node: string;
  readonly text: string | undefined;
}

/** The reply to a node that has written its figures. */
export interface BoardNews {
  /** Somebody looks at the fleet: figures are to come more often. */
  readonly isWatched: boolean;
  /** Another process merges: to ask for the right to is in vain. */
  readonly isLedByAnother: boolean;
}

export interface MarkedText {
  readonly mark: string;
  readonly text: string;
}

/** A text of the board with its mark, which is the first line. */
export function markedText(text: string | undefined): MarkedText | undefined {
  if (text === undefined) return undefined;
  const end = text.indexOf('\n');
  return end < 0
    ? { mark: text, text: '' }
    : { mark: text.slice(0, end), text: text.slice(end + 1) };
}

/**
 * Where the nodes of a fleet put their figures, so that one of them can show all. Only the right to lead is agreed
 * upon; the rest is plain reads and writes, and whoever reads checks what is there.
 */
export interface BoardStore {
  /** Whether other processes see it. */
  readonly isShared: boolean;
  /** This node's figures, for that long; one way to the store and back, with all that most nodes need to know. */
  write(node: string, text: string, ttlMs: number): Promise<BoardNews>;
  /**
   * Calls back when this process asks the store something that no request waits for: figures that are written at once go along,
   * and cost next to nothing. Not where that saves nothing. The result stops it.
   */
  onOtherCall(listener: () => void): () => void;
  /** The node leaves, and is missed by nobody. */
  remove(node: string): Promise<void>;
  /** The nodes that have ever written and not left. */
  nodes(): Promise<string[]>;
  /** Figures of these nodes, in their order. */
  read(nodes: readonly string[]): Promise<BoardEntry[]>;
  /** True if this process merges the figures, now and for the term. Rejects if the store cannot answer: nobody leads then. */
  lead(termMs: number): Promise<boolean>;
  /** The next one need not wait for the end of the term. */
  resign(): Promise<void>;
  /** A text of the leader, by name. */
  get(name: string): Promise<string | undefined>;
  /** The same for a text of a few characters. */
  peek(name: string): Promise<string | undefined>;
  set(name: string, text: string, ttlMs: number): Promise<void>;
  /** A text that several may write, with the mark of who did; see `swap`. */
  marked(name: string): Promise<MarkedText | undefined>;
  /**
   * Writes a text over the one with the mark that was read (undefined: over none). False if another one is there by now:
   * then nothing was written, and whoever asks has to read that one.
   */
  swap(
    name: string,
    readMark: string | undefined,
    next: MarkedText,
    ttlMs: number,
  ): Promise<boolean>;
  /** Entries of a list of slots of time; what is there for that slot is written over, and that before `oldest` forgotten. */
  entries(name: string): Promise<Readonly<Record<string, string>>>;
  putEntry(name: string, slot: number, text: string, oldest?: number): Promise<void>;
  forgetEntries(name: string, slots: readonly string[]): Promise<void>;
  close(): void;
}
