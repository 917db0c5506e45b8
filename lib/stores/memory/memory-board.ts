import { type Clock } from '../../common/clock.js';
import {
  markedText,
  type BoardEntry,
  type BoardNews,
  type BoardStore,
  type MarkedText,
} from '../board-store.js';

/** The board of a process by itself. */
export class MemoryBoard implements BoardStore {
  readonly isShared = false;
  private readonly texts = new Map<string, { readonly text: string; readonly until: number }>();
  private readonly slots = new Map<string, Map<string, string>>();
  private readonly members = new Set<string>();

  constructor(private readonly clock: Pick<Clock, 'now'>) {}

  async write(node: string, text: string, ttlMs: number): Promise<BoardNews> {
    this.members.add(node);
    await this.set(`node:${node}`, text, ttlMs);
    return { isWatched: (await this.get('watch')) !== undefined, isLedByAnother: false };
  }

  onOtherCall(): () => void {
    return () => {};
  }

  remove(node: string): Promise<void> {
    this.members.delete(node);
    this.texts.delete(`node:${node}`);
    return Promise.resolve();
  }

  nodes(): Promise<string[]> {
    return Promise.resolve([...this.members]);
  }

  read(nodes: readonly string[]): Promise<BoardEntry[]> {
    return Promise.all(nodes.map(async (node) => ({ node, text: await this.get(`node:${node}`) })));
  }

  lead(): Promise<boolean> {
    return Promise.resolve(true);
  }

  resign(): Promise<void> {
    return Promise.resolve();
  }

  get(name: string): Promise<string | undefined> {
    const found = this.texts.get(name);
    const isThere = found !== undefined && this.clock.now() < found.until;
    return Promise.resolve(isThere ? found.text : undefined);
  }

  peek(name: string): Promise<string | undefined> {
    return this.get(name);
  }

  set(name: string, text: string, ttlMs: number): Promise<void> {
    this.texts.set(name, { text, until: this.clock.now() + ttlMs * 1000 });
    return Promise.resolve();
  }

  async marked(name: string): Promise<MarkedText | undefined> {
    return markedText(await this.get(name));
  }

  async swap(
    name: string,
    readMark: string | undefined,
    { mark, text }: MarkedText,
    ttlMs: number,
  ): Promise<boolean> {
    const held = await this.marked(name);
    if (held?.mark === mark) return true;
    if (held?.mark !== readMark) return false;
    await this.set(name, `${mark}\n${text}`, ttlMs);
    return true;
  }

  entries(name: string): Promise<Readonly<Record<string, string>>> {
    return Promise.resolve(Object.fromEntries(this.slots.get(name) ?? []));
  }

  putEntry(name: string, slot: number, text: string, oldest = -Infinity): Promise<void> {
    const slots = this.slots.get(name) ?? new Map<string, string>();
    this.slots.set(name, slots.set(String(slot), text));
    for (const known of slots.keys()) if (Number(known) < oldest) slots.delete(known);
    return Promise.resolve();
  }

  forgetEntries(name: string, slots: readonly string[]): Promise<void> {
    for (const slot of slots) this.slots.get(name)?.delete(slot);
    return Promise.resolve();
  }

  close(): void {
    this.texts.clear();
  }
}
