import { RetryPause } from '../../lib/common/retry-pause.js';

describe('a pause between attempts', () => {
  it('is due after three failures in a row, of which those under way together are one', () => {
    const pause = new RetryPause(100, 400);
    expect([pause.failed(10, 0), pause.failed(11, 0), pause.failed(12, 1)]).toEqual([
      false,
      false,
      false,
    ]);
    expect(pause.failed(20, 15)).toBe(false);
    pause.succeeded();
    expect([pause.failed(30), pause.failed(40), pause.failed(50)]).toEqual([false, false, true]);
    expect(pause.isDue).toBe(true);
  });

  it('is twice as long each time, up to a bound, until a call is answered', () => {
    const pause = new RetryPause(100, 400);
    expect([pause.begin(), pause.begin(), pause.begin(), pause.begin()]).toEqual([
      100, 200, 400, 400,
    ]);
    pause.succeeded();
    expect(pause.begin()).toBe(100);
  });

  it('goes on growing after a probe alone was answered, and begins short again after a hint', () => {
    const pause = new RetryPause(100, 400);
    pause.begin();
    pause.forgive();
    expect(pause.begin()).toBe(200);
    pause.shorten();
    expect(pause.begin()).toBe(100);
  });
});
