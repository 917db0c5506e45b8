/**
 * The revision that a node goes by, beside the one that the store goes by. They differ for a while
 * after every change: the node may be the first to know of it, or the last.
 */
export class RevisionWatch {
  /** The store has not been heard to go by this node's limits yet. */
  isAwaited = false;
  /** The limits have changed, and the store was not heard to go by them since, under any revision. */
  isUnconfirmed = false;
  private own = 0;
  private latest = 0;

  /** The node goes by limits of this revision from now on. */
  apply(revision: number): void {
    this.own = revision;
    this.latest = Math.max(this.latest, revision);
    this.isAwaited = true;
  }

  /**
   * What a reply settled under this revision means: the store has followed the node, or it is ahead
   * of it, which is told once for each revision.
   */
  hear(revision: number): 'confirmed' | 'overtaken' | 'nothing new' {
    const wasAwaited = this.isAwaited;
    if (revision >= this.own) this.isAwaited = false;
    if (revision > this.latest) {
      this.latest = revision;
      return 'overtaken';
    }
    if (!wasAwaited || revision !== this.own) return 'nothing new';
    this.isUnconfirmed = false;
    return 'confirmed';
  }
}
