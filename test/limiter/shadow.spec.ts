import { createRateLimiter, type PolicyInput } from 'nestjs-weir';
import { Bench, now } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';

function limiterOf(policies: Record<string, PolicyInput>) {
  const clock = new ManualClock();
  const limiter = createRateLimiter({ policies, clock });
  const requests = Object.keys(policies).map((policy) => ({ policy, key: 'k' }));
  const left = (policy: string) => now(limiter.peek({ policy, key: 'k' })).remaining;
  return { clock, limiter, requests, left, take: () => now(limiter.tryAcquire(requests)) };
}

describe('a shadow policy', () => {
  it('lets pass what it would deny, and counts it', () => {
    const bench = new Bench({ rate: 2, shadow: true });
    expect(bench.takeMany(5)).toBe(5);
    expect(bench.limiter.stats().policies.p).toMatchObject({
      allowed: 2,
      denied: 0,
      shadowDenied: 3,
    });
  });

  it('gives no advice to wait to a caller that may go', () => {
    const bench = new Bench({ rate: 1, shadow: true });
    bench.take();
    expect(bench.take()).toMatchObject({ allowed: true, remaining: 0, retryAfterMs: 0 });
    expect(bench.peek()).toMatchObject({ allowed: true, remaining: 0, retryAfterMs: 0 });
  });

  it('recovers like any other, so that its counts are those of the real policy', () => {
    const bench = new Bench({ rate: 10, burst: 1, shadow: true });
    bench.takeMany(3);
    bench.clock.advance(100);
    bench.takeMany(1);
    expect(bench.limiter.stats().policies.p).toMatchObject({ allowed: 2, shadowDenied: 2 });
  });

  it('beside others neither denies nor decides', () => {
    const all = limiterOf({ real: { rate: 10 }, trial: { rate: 1, shadow: true } });
    for (let i = 1; i <= 10; i++) {
      expect(all.take()).toMatchObject({ allowed: true, policy: 'real', remaining: 10 - i });
    }
    expect(all.take()).toMatchObject({ allowed: false, policy: 'real' });
    expect(all.limiter.stats().policies).toMatchObject({
      real: { allowed: 10, denied: 1 },
      trial: { allowed: 1, denied: 0, shadowDenied: 9 },
    });
  });

  it('is not charged when an enforced one denies', () => {
    const all = limiterOf({ trial: { rate: 10, shadow: true }, real: { rate: 2 } });
    for (let i = 0; i < 6; i++) all.take();
    expect(all.left('trial')).toBe(8);
  });

  it('among shadows only: each counts for itself, and all pass', () => {
    const all = limiterOf({ a: { rate: 1, shadow: true }, b: { rate: 3, shadow: true } });
    for (let i = 0; i < 4; i++) expect(all.take().allowed).toBe(true);
    expect(all.limiter.stats().policies).toMatchObject({
      a: { allowed: 1, shadowDenied: 3 },
      b: { allowed: 3, shadowDenied: 1 },
    });
  });

  it('never makes anybody wait', async () => {
    const bench = new Bench({ rate: 1, shadow: true });
    bench.take();
    await expect(bench.limiter.acquire({ policy: 'p', key: 'k' })).resolves.toMatchObject({
      allowed: true,
    });
  });

  it('never makes anybody wait, not even as a shaper', () => {
    const bench = new Bench({ algorithm: 'leaky-bucket', mode: 'shaper', rate: 2, shadow: true });
    expect(bench.take()).toMatchObject({ allowed: true, delayMs: 0 });
    expect(bench.take()).toMatchObject({ allowed: true, delayMs: 0 });
    expect(bench.take()).toMatchObject({ allowed: true, delayMs: 0 });
  });

  it('says of a request that it would have been denied', () => {
    const bench = new Bench({ rate: 1, shadow: true });
    expect(bench.take().isPassedOver).toBeUndefined();
    expect(bench.take()).toMatchObject({ allowed: true, isPassedOver: true });
  });

  it('gets back what it gave, and no token that it never gave', async () => {
    const trial = limiterOf({ trial: { rate: 2, period: '1h', shadow: true } });
    const [request] = trial.requests;
    const [given, , over] = [1, 2, 3].map(() => now(trial.limiter.tryAcquire(request!)));
    await trial.limiter.refund(request!, over);
    expect(trial.left('trial')).toBe(0);
    await trial.limiter.refund(request!, given);
    expect(trial.left('trial')).toBe(1);
  });

  it('gets back what it gave beside others, and no token that it never gave', async () => {
    const all = limiterOf({
      real: { rate: 9, period: '1h' },
      trial: { rate: 1, period: '1h', shadow: true },
    });
    const [given, over] = [all.take(), all.take()];
    await all.limiter.refund(all.requests, over);
    expect([all.left('real'), all.left('trial')]).toEqual([8, 0]);
    // The one that only watches may be refunded by itself as well.
    await all.limiter.refund(all.requests[1]!, over);
    expect(all.left('trial')).toBe(0);
    await all.limiter.refund(all.requests, given);
    expect([all.left('real'), all.left('trial')]).toEqual([9, 1]);
  });

  it('gets back only what it gave when a held-back request is aborted', async () => {
    const all = limiterOf({
      line: { algorithm: 'leaky-bucket', mode: 'shaper', rate: 10 },
      trial: { rate: 1, period: '1h', shadow: true },
    });
    all.take();
    expect(all.left('trial')).toBe(0);
    const controller = new AbortController();
    const held = all.limiter.acquire(all.requests, { signal: controller.signal });
    controller.abort(new Error('gone'));
    await expect(held).rejects.toThrow('gone');
    expect(all.left('trial')).toBe(0);
  });
});
