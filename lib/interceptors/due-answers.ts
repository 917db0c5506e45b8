/**
 * When the answer to a question is to be stored again. Decided before anything is put into a key or
 * into JSON: of a busy route's answers one in thousands is stored.
 *
 * Two generations: when the young one is full the old one is forgotten, and what is asked often moves
 * over. Questions without end cost no more memory than two of them; who is forgotten is stored early.
 */
export class DueAnswers {
  private young = new Map<string, number>();
  private old = new Map<string, number>();

  constructor(private readonly most: number) {}

  /** True at most once in `everyMicros` for a question, as long as it is remembered. */
  isDue(question: string, nowMicros: number, everyMicros: number): boolean {
    const next = this.young.get(question) ?? this.fromOld(question);
    if (next !== undefined && nowMicros < next) return false;
    this.remember(question, nowMicros + everyMicros);
    return true;
  }

  private fromOld(question: string): number | undefined {
    const next = this.old.get(question);
    if (next !== undefined) this.remember(question, next);
    return next;
  }

  private remember(question: string, next: number): void {
    if (this.young.size >= this.most && !this.young.has(question)) {
      this.old = this.young;
      this.young = new Map();
    }
    this.young.set(question, next);
  }
}
