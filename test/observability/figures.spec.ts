import { figure } from '../../lib/observability/figures.js';

describe('a figure', () => {
  it('is told in thousands and millions, and never in a thousand thousands', () => {
    const told = [9999, 9999.4, 9999.5, 99_940, 99_960, 999_499, 999_500, 999_949, 1_000_000];
    expect(told.map(figure)).toEqual([
      ...['9,999', '9,999', '10k', '99.9k', '100k', '999k', '1M', '1M', '1M'],
    ]);
  });
});
