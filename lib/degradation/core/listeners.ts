/** Those who want to hear of something. One that throws does not keep the others from hearing. */
export class Listeners<E> {
  private readonly all = new Set<(event: E) => void>();

  add(listener: (event: E) => void): () => void {
    this.all.add(listener);
    return () => this.all.delete(listener);
  }

  tell(event: E): void {
    for (const listener of this.all) {
      try {
        listener(event);
      } catch (error) {
        process.emitWarning(error instanceof Error ? error : String(error));
      }
    }
  }
}
