import { ManualClock } from 'nestjs-weir/testing';

describe('a manual clock', () => {
  it('stands still until it is moved', () => {
    const clock = new ManualClock(5, 1000);
    expect([clock.now(), clock.epochMs(clock.now())]).toEqual([5, 1000.005]);
    clock.advance(2);
    expect(clock.now()).toBe(2005);
  });

  it('runs timers when they are due, in their order, at their time', () => {
    const clock = new ManualClock(0);
    const ran: [string, number][] = [];
    const note = (name: string) => () => ran.push([name, clock.now()]);
    clock.after(20, note('late'));
    clock.after(10, note('early'));
    clock.after(10, note('early too'));
    clock.every(8, note('again'));
    clock.advance(17);
    expect(ran).toEqual([
      ['again', 8000],
      ['early', 10_000],
      ['early too', 10_000],
      ['again', 16_000],
    ]);
    expect([clock.now(), clock.pending]).toEqual([17_000, 2]);
  });

  it('forgets timers that were cancelled', () => {
    const clock = new ManualClock();
    let ran = 0;
    const cancel = [clock.after(1, () => ran++), clock.every(1, () => ran++)];
    for (const one of cancel) one();
    clock.advance(10);
    expect([ran, clock.pending]).toEqual([0, 0]);
  });

  it('lets promises settle between timers if it is asked to', async () => {
    const clock = new ManualClock(0);
    const ran: number[] = [];
    const wait = (ms: number) => new Promise<void>((resolve) => clock.after(ms, resolve));
    const work = async (): Promise<void> => {
      for (let i = 0; i < 3; i++) {
        await wait(10);
        ran.push(clock.now());
      }
    };
    const done = work();
    await clock.advanceAsync(100);
    await done;
    expect(ran).toEqual([10_000, 20_000, 30_000]);
  });

  it('can jump as broken clocks do', () => {
    const clock = new ManualClock(0);
    let ran = 0;
    clock.after(1, () => ran++);
    clock.jump(5000);
    expect([ran, clock.now()]).toEqual([0, 5000]);
  });
});
