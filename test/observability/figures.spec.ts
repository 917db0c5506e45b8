import { apart, figure, percent } from '../../lib/observability/figures.js';

describe('a figure', () => {
  it('is told in thousands and millions, and never in a thousand thousands', () => {
    const told = [9999, 9999.4, 9999.5, 99_940, 99_960, 999_499, 999_500, 999_949, 1_000_000];
    expect(told.map((one) => figure(one))).toEqual([
      ...['9,999', '9,999', '10k', '99.9k', '100k', '999k', '1M', '1M', '1M'],
    ]);
  });

  it('has as many digits beside another as it takes to tell them apart', () => {
    expect(apart(figure, 12_341, 12_339)).toEqual(['12.341k', '12.339k']);
    expect(apart(figure, 12_400, 12_300)).toEqual(['12.4k', '12.3k']);
    expect(apart(figure, 80.4, 80)).toEqual(['80.4', '80']);
    expect(apart(percent, 0.050_04, 0.05)).toEqual(['5.004 %', '5 %']);
    expect(apart(percent, 0.000_02, 0.000_01)).toEqual(['0.002 %', '0.001 %']);
    expect(apart(figure, 500, 500)).toEqual(['500', '500']);
    // A difference that nobody can read is none.
    expect(apart(figure, 1 + 1e-12, 1)).toEqual(['1', '1']);
  });
});
