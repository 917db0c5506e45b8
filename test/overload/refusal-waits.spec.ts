import { refusalWaits } from '../../lib/overload/refusal-waits.js';

describe('the waits that refusals name', () => {
  it('are whole numbers from the least to twice as much', () => {
    expect(refusalWaits(1)).toEqual([1, 2]);
    expect(refusalWaits(3)).toEqual([3, 4, 5, 6]);
    expect(refusalWaits(1000)).toHaveLength(16);
    expect([refusalWaits(1000)[0], refusalWaits(1000).at(-1)]).toEqual([1000, 2000]);
  });

  it('are no shorter than a least that is none', () => {
    expect(refusalWaits(1.5)).toEqual([2, 3, 4]);
    expect(refusalWaits(333.3).every((wait) => Number.isInteger(wait) && wait >= 334)).toBe(true);
  });
});
