import { RedisKeys, SHARDS } from '../../lib/stores/redis/keys.js';

describe('the shards of keys', () => {
  const keys = Array.from({ length: 64_000 }, (_, i) => `user-${i}`);

  /** The number of keys of each shard. */
  function counts(names: RedisKeys, of: readonly string[]): number[] {
    const all = new Array<number>(SHARDS).fill(0);
    for (const key of of) all[names.shardOf(key)]!++;
    return all;
  }

  it('are the same in all processes of one prefix', () => {
    const [one, other] = [new RedisKeys('weir'), new RedisKeys('weir')];
    expect(keys.every((key) => one.shardOf(key) === other.shardOf(key))).toBe(true);
  });

  it('cannot be aimed at by somebody who does not know the prefix', () => {
    const known = new RedisKeys('weir');
    const aimed = keys.filter((key) => known.shardOf(key) === 7);
    expect(aimed.length).toBeGreaterThan(500);
    const elsewhere = counts(new RedisKeys('weir-8f3a'), aimed);
    expect(Math.max(...elsewhere)).toBeLessThan(aimed.length / 10);
  });

  it('have about as many keys each', () => {
    const all = counts(new RedisKeys('weir'), keys);
    expect([Math.min(...all) > 800, Math.max(...all) < 1200]).toEqual([true, true]);
  });
});
