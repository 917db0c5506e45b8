import { createHash } from 'node:crypto';
import { isPlainKey, ownText } from '../common/ids.js';

/** Places for them on a route; the caches hold 10,000 answers of all routes by default. */
const LONG_QUESTIONS = 16_384;

/**
 * When the answer to a question is to be stored again. Decided before anything is put into a key or
 * into JSON: of a busy route's answers one in thousands is stored.
 *
 * Two generations: when the young one is full the old one is forgotten, and what is asked often moves
 * over. Questions without end cost no more memory than two of them. Who is forgotten is stored early.
 */
export class DueAnswers {
  private young = new Map<string, number>();
  private old = new Map<string, number>();
  private long: LongQuestions | undefined;

  constructor(private readonly most: number) {}

  /** True at most once in `everyMicros` for a question, as long as it is remembered. */
  isDue(question: string, nowMicros: number, everyMicros: number): boolean {
    if (!isPlainKey(question)) {
      this.long ??= new LongQuestions();
      return this.long.isDue(question, nowMicros, everyMicros);
    }
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
    this.young.set(ownText(question), next);
  }
}

/**
 * The same for questions that are too long to be remembered: 192 KB, whatever is asked. Their digest tells a
 * place and a mark; a question that finds another's mark takes the place, and who has lost it is stored early.
 */
class LongQuestions {
  private readonly marks = new Int32Array(LONG_QUESTIONS);
  private readonly next = new Float64Array(LONG_QUESTIONS);

  isDue(question: string, nowMicros: number, everyMicros: number): boolean {
    // Over UTF-16, where texts that UTF-8 cannot tell apart (lone surrogates) still differ.
    const digest = createHash('sha256').update(question, 'utf16le').digest();
    const place = digest.readUInt32LE(0) % LONG_QUESTIONS;
    const mark = digest.readInt32LE(4);
    if (this.marks[place] === mark && nowMicros < this.next[place]!) return false;
    this.marks[place] = mark;
    this.next[place] = nowMicros + everyMicros;
    return true;
  }
}
