/** Runs tasks one after another, in the order in which they came. */
export class Turns {
  private last: Promise<unknown> = Promise.resolve();

  take<T>(task: () => Promise<T>): Promise<T> {
    const turn = this.last.then(task);
    this.last = turn.catch(() => {});
    return turn;
  }

  /** Resolves when everything that was begun or waits is over. */
  async over(): Promise<void> {
    await this.last;
  }
}
