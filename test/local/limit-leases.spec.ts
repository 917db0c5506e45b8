import { Outcome } from '../../lib/algorithms/algorithm.js';
import { AlgorithmCode, type Limit } from '../../lib/algorithms/limit.js';
import { LeaseRegistry } from '../../lib/local/lease-registry.js';
import { type LimitLeases } from '../../lib/local/limit-leases.js';
import { LeasedStore } from '../support/leased-store.js';
import { ManualClock } from '../support/manual-clock.js';
import { compileLimit } from '../support/limits.js';

const BURST = 1000;

function bucket(rate: number, burst: number): Limit {
  const algorithm = AlgorithmCode.TokenBucket;
  const shape = { periodMs: 1000, maxDelayMs: Infinity, subWindows: 1 };
  return compileLimit({ algorithm, rate, burst, ...shape });
}

interface NodeOptions {
  readonly rate?: number;
  readonly burst?: number;
  readonly sync?: 'auto' | 'leased';
  readonly mostKeys?: number;
}

/** One node with a store behind it, and time in our hands. */
class Node {
  readonly clock = new ManualClock(1_000_000_000);
  readonly store: LeasedStore;
  readonly leaseRegistry: LeaseRegistry;
  readonly keys: LimitLeases;

  constructor({ rate = 1000, burst = BURST, sync = 'auto', mostKeys = 10 }: NodeOptions = {}) {
    const limit = bucket(rate, burst);
    this.store = new LeasedStore(limit, () => this.clock.now());
    this.leaseRegistry = new LeaseRegistry(this.store, this.clock, mostKeys);
    this.keys = this.leaseRegistry.addLimit(
      { id: 'p:default:1', figures: limit, revision: 0 },
      sync,
    );
  }

  /** Takes as the limiter does: its own tokens first, then the store. */
  ask(key = 'k', cost = 1): 'local' | 'store' | 'denied' {
    const outcome = new Outcome();
    outcome.nowMicros = this.clock.now();
    if (this.keys.take(key, cost, outcome)) return 'local';
    const allowed = this.store.take(key, cost);
    this.keys.missed(key, cost, this.clock.now());
    return allowed ? 'store' : 'denied';
  }

  askMany(count: number, key = 'k'): string[] {
    return Array.from({ length: count }, () => this.ask(key));
  }

  /** One request every millisecond, answered calls included. */
  run(ms: number, perMs = 1): string[] {
    const sources: string[] = [];
    for (let i = 0; i < ms; i++) {
      for (let k = 0; k < perMs; k++) sources.push(this.ask());
      this.clock.advance(1);
      this.store.answerAll();
    }
    return sources;
  }

  tokens(key = 'k'): number {
    return this.keys.tokensOf(key, this.clock.now());
  }
}

describe('a key earns a lease', () => {
  it('by the fourth request within a horizon that has to go to the store', () => {
    const node = new Node();
    expect(node.askMany(3)).toEqual(['store', 'store', 'store']);
    expect(node.store.calls).toHaveLength(0);
    node.ask();
    expect(node.store.calls).toHaveLength(1);
    node.store.answer();
    expect(node.askMany(5)).toEqual(Array(5).fill('local'));
  });

  it('not by requests that are far apart', () => {
    const node = new Node();
    for (let i = 0; i < 100; i++) {
      node.ask();
      node.clock.advance(60);
    }
    expect(node.store.calls).toHaveLength(0);
    expect(node.clock.pending).toBe(0);
  });

  it('not if its bucket is too small to share out among the nodes', () => {
    const small = new Node({ burst: 19 });
    expect(small.askMany(19)).not.toContain('local');
    const crowded = new Node({ burst: 199 });
    crowded.store.nodes = 10;
    crowded.askMany(100);
    expect([...small.store.calls, ...crowded.store.calls]).toHaveLength(0);
  });

  it('not while it is one of many cold keys, whatever cells they meet in', () => {
    const node = new Node();
    for (let i = 0; i < 20_000; i++) {
      node.ask(`key${i}`);
      if (i % 40 === 0) node.clock.advance(1);
    }
    expect(node.store.calls.length).toBeLessThan(20);
  });

  it('at once where the policy says so', () => {
    const node = new Node({ sync: 'leased' });
    expect(node.ask()).toBe('store');
    node.store.answer();
    expect(node.ask()).toBe('local');
  });

  it('only while there is room; further keys are decided by the store', () => {
    const node = new Node({ mostKeys: 2, sync: 'leased' });
    for (const key of ['a', 'b', 'c']) node.ask(key);
    node.store.answerAll();
    expect(['a', 'b', 'c'].map((key) => node.ask(key))).toEqual(['local', 'local', 'store']);
    node.keys.forget('a');
    node.ask('c');
    node.store.answerAll();
    expect(node.ask('c')).toBe('local');
  });
});

describe('a leased key', () => {
  it('is decided here nearly always, with few calls', () => {
    const node = new Node();
    node.run(100);
    const before = node.store.calls.length;
    const sources = node.run(1000);
    expect(sources.filter((source) => source === 'local').length).toBeGreaterThan(990);
    expect(node.store.calls.length - before).toBeLessThan(40);
  });

  it('never holds more than its part of the bucket', () => {
    const node = new Node({ rate: 100_000, burst: BURST });
    node.store.nodes = 5;
    for (let i = 0; i < 200; i++) {
      node.run(1, 50);
      expect(node.tokens()).toBeLessThanOrEqual(BURST / 10);
    }
    expect(node.store.calls.length).toBeGreaterThan(10);
  });

  it('has one call on its way at a time', () => {
    const node = new Node();
    node.askMany(200);
    expect(node.store.underway).toHaveLength(1);
    node.clock.advance(200);
    expect(node.store.underway).toHaveLength(1);
  });

  it('says how many tokens there are, here and as far as is known in the store', () => {
    const node = new Node();
    node.askMany(4);
    node.store.answer();
    const outcome = new Outcome();
    outcome.nowMicros = node.clock.now();
    node.keys.take('k', 1, outcome);
    expect(outcome).toMatchObject({ allowed: true, waitMicros: 0 });
    expect(Math.floor(outcome.level / node.store.limit.perToken)).toBe(BURST - 5);
  });

  it('gives back what it does not need within a sweep, and everything when it cools down', () => {
    const node = new Node();
    node.run(30, 10);
    const held = node.tokens();
    expect(held).toBeGreaterThan(100);
    // Demand is believed to last, and less so with each slot in which there is none.
    for (let i = 0; i < 16; i++) {
      node.clock.advance(50);
      node.store.answerAll();
    }
    const returned = node.store.calls.reduce((sum, { report }) => sum + report.returned, 0);
    expect(returned).toBeGreaterThan(0);
    expect(node.tokens()).toBe(held - returned);
    for (let i = 0; i < 100; i++) {
      node.clock.advance(50);
      node.store.answerAll();
    }
    expect(node.store.look()).toEqual({ inStore: BURST, outstanding: 0 });
    expect([node.keys.size, node.clock.pending]).toEqual([0, 0]);
  });

  it('tells what was used also when it needs no more', () => {
    const node = new Node();
    node.askMany(4);
    node.store.answer();
    node.askMany(10);
    node.clock.advance(100);
    node.store.answerAll();
    const told = node.store.calls.reduce((sum, { report }) => sum + report.used, 0);
    expect(told).toBe(10);
  });

  it('is asked for in the store for a pace after a grant that fell short', () => {
    const node = new Node({ rate: 1000, burst: 100 });
    node.store.take('k', 94);
    node.askMany(4);
    node.store.answer();
    expect(node.tokens()).toBe(2);
    expect(node.askMany(50).filter((source) => source !== 'denied')).toEqual(['local', 'local']);
    node.clock.advance(40);
    expect(node.ask()).toBe('store');
    expect(node.store.calls).toHaveLength(1);
    node.clock.jump(10_000);
    node.ask();
    expect(node.store.calls.map(({ want }) => want)).toEqual([4, expect.any(Number)]);
    expect(node.store.calls[1]!.report.used).toBe(2);
  });

  it('makes room for others when it got nothing for a second', () => {
    const node = new Node({ rate: 0.01, burst: 100 });
    node.askMany(200);
    node.store.answerAll();
    node.askMany(200);
    for (let i = 0; i < 30; i++) {
      node.clock.advance(50);
      node.store.answerAll();
      node.ask();
    }
    expect([node.keys.size, node.clock.pending]).toEqual([0, 0]);
  });
});

describe('leased tokens', () => {
  it('are never used later than a second after the call was made', () => {
    const node = new Node();
    node.askMany(40);
    node.clock.jump(300_000);
    node.store.answer();
    node.clock.jump(680_000);
    expect(node.tokens()).toBeGreaterThan(0);
    node.clock.jump(20_000);
    expect(node.tokens()).toBe(0);
    expect(node.ask()).toBe('store');
  });

  it('that come when their time is over are not used at all', () => {
    const node = new Node();
    node.askMany(40);
    node.store.arrive();
    node.clock.jump(1_000_000);
    node.store.answer();
    expect(node.tokens()).toBe(0);
  });

  it('of a reply that came after the deadline are used, and none are doubled', () => {
    const node = new Node();
    node.askMany(40);
    node.store.arrive();
    node.store.lose(0, { late: true });
    expect(node.tokens()).toBe(node.store.look().outstanding);
    expect(node.tokens()).toBeGreaterThan(0);
  });

  it('whose grant was lost count as outstanding until two generations have passed', () => {
    const node = new Node();
    node.askMany(40);
    node.store.arrive();
    node.store.lose();
    const { outstanding } = node.store.look();
    expect(outstanding).toBeGreaterThan(0);
    node.clock.jump(999_999);
    expect(node.store.look().outstanding).toBe(outstanding);
    node.clock.jump(1_000_001);
    expect(node.store.look()).toEqual({ inStore: BURST - outstanding, outstanding: 0 });
    node.clock.jump(outstanding * 1000);
    expect(node.store.look().inStore).toBe(BURST);
  });

  it('of two generations are spent oldest first, and reported under their own', () => {
    const node = new Node({ rate: 1000 });
    node.clock.jump(900_000);
    node.run(90);
    const before = node.tokens();
    node.clock.jump(20_000);
    const sources = node.run(400);
    expect(before).toBeGreaterThan(0);
    expect(sources.filter((source) => source === 'denied')).toHaveLength(0);
    node.leaseRegistry.close();
    node.store.answerAll();
    expect(node.store.look().outstanding).toBe(0);
  });

  it('go back into the hand as long as the store was not told, else into the store', () => {
    const node = new Node();
    node.askMany(4);
    node.store.answer();
    node.askMany(3);
    const held = node.tokens();
    expect(node.keys.putBack('k', 3, node.clock.now())).toBe(true);
    expect(node.tokens()).toBe(held + 3);
    expect(node.keys.putBack('k', 1, node.clock.now())).toBe(false);
    expect(node.keys.putBack('another', 1, node.clock.now())).toBe(false);
  });

  it('are forgotten, and those on their way too, when the key is reset', () => {
    const node = new Node();
    node.askMany(4);
    node.store.arrive();
    node.keys.forget('k');
    node.store.flush();
    node.store.answer();
    expect(node.tokens()).toBe(0);
    expect(node.store.calls).toHaveLength(1);
  });

  it('all go back on closing, and those on their way when they come', () => {
    const node = new Node();
    node.askMany(4);
    node.store.answer();
    node.askMany(2);
    node.leaseRegistry.close();
    node.store.answerAll();
    expect(node.store.look()).toEqual({ inStore: BURST - 6, outstanding: 0 });

    const busy = new Node();
    busy.askMany(4);
    busy.leaseRegistry.close();
    busy.store.answerAll();
    expect(busy.store.look()).toEqual({ inStore: BURST - 4, outstanding: 0 });
    expect(busy.clock.pending).toBe(0);
  });
});
