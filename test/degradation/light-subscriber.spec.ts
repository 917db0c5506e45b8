import { defer, mergeAll, of, Subject, Subscriber, throwError, type Observable } from 'rxjs';
import { LightSubscriber } from '../../lib/degradation/light-subscriber.js';

class Noted extends LightSubscriber {
  readonly said: unknown[] = [];

  protected heard(value: unknown): void {
    this.said.push(value);
  }

  protected failed(error: unknown): void {
    this.said.push(error);
  }

  protected completed(): void {
    this.said.push('complete');
  }
}

function listen(source: Observable<unknown>): Noted {
  const noted = new Noted();
  // It is taken as it is, and not wrapped.
  expect(source.subscribe(noted.asSubscriber())).toBe(noted);
  return noted;
}

describe('LightSubscriber', () => {
  it('hears all that is said, and nothing after the end', () => {
    expect(listen(of(1, 2)).said).toEqual([1, 2, 'complete']);
    expect(listen(throwError(() => 'broken')).said).toEqual(['broken']);
    const noted = listen(of(1));
    noted.next(2);
    noted.error('late');
    noted.complete();
    expect(noted.said).toEqual([1, 'complete']);
  });

  it('ends what it listens to, through operators too', () => {
    const source = new Subject<unknown>();
    const noted = listen(defer(() => of(source)).pipe(mergeAll()));
    source.next(1);
    expect(source.observed).toBe(true);
    noted.unsubscribe();
    expect(source.observed).toBe(false);
    source.next(2);
    expect(noted.said).toEqual([1]);
  });

  it('ends with the subscriber that it was added to', () => {
    const source = new Subject<unknown>();
    const caller = new Subscriber<unknown>();
    const noted = listen(source);
    caller.add(noted);
    caller.complete();
    expect([noted.closed, source.observed]).toEqual([true, false]);
  });

  it('ends at once what is added too late, and not what was taken back', () => {
    const ended: string[] = [];
    const noted = new Noted();
    const kept = (): void => void ended.push('kept');
    noted.add(kept);
    noted.add(() => void ended.push('other'));
    noted.remove(kept);
    noted.unsubscribe();
    noted.unsubscribe();
    noted.add({ unsubscribe: () => void ended.push('late') });
    expect(ended).toEqual(['other', 'late']);
  });
});
