import { isPlainKey, numberOf, ownText } from '../common/ids.js';

/**
 * When the answer to a question is to be stored again. Decided before anything is put into a key or
 * into JSON: of a busy route's answers one in thousands is stored.
 *
 * Two generations: when the young one is full the old one is forgotten, and what is asked often moves
 * over. Questions without end cost no more memory than two of them, and long ones, of which a number
 * is remembered, no more than short ones. Who is forgotten is stored early; who has the number of
 * another one is stored late.
 */
export class DueAnswers {
  private young = new Map<string | number, number>();
  private old = new Map<string | number, number>();

  constructor(private readonly most: number) {}

  /** True at most once in `everyMicros` for a question, as long as it is remembered. */
  isDue(question: string, nowMicros: number, everyMicros: number): boolean {
    const key = isPlainKey(question) ? question : numberOf(question);
    const next = this.young.get(key) ?? this.fromOld(key);
    if (next !== undefined && nowMicros < next) return false;
    this.remember(key, nowMicros + everyMicros);
    return true;
  }

  private fromOld(key: string | number): number | undefined {
    const next = this.old.get(key);
    if (next !== undefined) this.remember(key, next);
    return next;
  }

  private remember(key: string | number, next: number): void {
    if (this.young.size >= this.most && !this.young.has(key)) {
      this.old = this.young;
      this.young = new Map();
    }
    this.young.set(typeof key === 'string' ? ownText(key) : key, next);
  }
}
