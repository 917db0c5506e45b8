import { createRateLimiter, type Decision, type PolicyInput, type RateLimiter } from 'nestjs-weir';
import { VirtualStand } from '../support/virtual-stand.js';

class Stand extends VirtualStand {
  readonly limiter: RateLimiter;

  constructor(p: PolicyInput) {
    super();
    const { store, machine } = this;
    const { clock } = machine;
    this.limiter = createRateLimiter({ policies: { p }, clock, nodeId: 'n1', store });
  }

  ask(cost = 1): Promise<Decision> {
    return this.run(() => this.limiter.tryAcquire({ policy: 'p', key: 'k', cost }));
  }
}

describe('tokens that passed by share while the store was away', () => {
  it('are told to it as soon as it answers for the key', async () => {
    const stand = new Stand({ rate: 100, period: '1d', sync: 'exact' });
    await stand.pass(100);
    stand.goDown();
    await stand.pass(10);
    expect(await stand.ask(40)).toMatchObject({ allowed: true, source: 'fallback' });
    await stand.comeBack();
    expect(await stand.ask()).toMatchObject({ allowed: true, source: 'store' });
    expect(await stand.inStore('p', 100)).toBe(59);
  });

  it.each([
    ['lowered', 50, 29],
    ['raised', 200, 119],
  ])('are the same part of a limit that was %s meanwhile', async (_what, rate, left) => {
    const stand = new Stand({ rate: 100, period: '1d', sync: 'exact' });
    await stand.pass(100);
    stand.goDown();
    await stand.pass(10);
    expect(await stand.ask(40)).toMatchObject({ allowed: true, source: 'fallback' });
    stand.limiter.prepare({
      revision: 1,
      policies: { p: { rate, period: '1d', sync: 'exact' } },
    })();
    await stand.comeBack();
    expect(await stand.ask()).toMatchObject({ allowed: true, source: 'store' });
    expect(await stand.inStore('p', rate)).toBe(left);
  });

  it('are forgiven if the key was reset after them, and not if they passed after that', async () => {
    const stand = new Stand({ rate: 100, period: '1d', sync: 'exact' });
    await stand.pass(100);
    stand.cutOff();
    expect(await stand.ask(40)).toMatchObject({ allowed: true, source: 'fallback' });
    await stand.reset('p', 100);
    expect(await stand.ask(5)).toMatchObject({ allowed: true, source: 'fallback' });
    await stand.comeBack();
    await stand.pass(2000);
    expect(await stand.ask()).toMatchObject({ allowed: true, source: 'store' });
    expect(await stand.inStore('p', 100)).toBe(94);
  });

  it('are told also if it is asked for leases only', async () => {
    const stand = new Stand({ rate: 100, period: '1d', sync: 'leased' });
    await stand.pass(100);
    for (let i = 0; i < 10; i++) {
      await stand.ask();
      await stand.pass(5);
    }
    stand.goDown();
    await stand.pass(10);
    expect(await stand.ask(40)).toMatchObject({ allowed: true, source: 'fallback' });
    await stand.comeBack();
    const given = stand.given;
    for (let i = 0; i < 4 && stand.given === given; i++) {
      expect(await stand.ask()).toMatchObject({ allowed: true, source: 'local' });
      await stand.pass(20);
    }
    expect(stand.given).toBeGreaterThan(given);
    expect(await stand.inStore('p', 100)).toBe(100 - stand.given - 40);
  });
});
