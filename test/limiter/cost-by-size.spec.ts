import { costBySize } from 'nestjs-weir';
import { errorWith } from '../support/errors.js';

describe('costBySize', () => {
  it.each([
    ['GET', 1024, 2],
    ['PUT', 10 * 1024, 6],
    ['get', 0, 1],
    ['GET', 65_536, 2],
    ['GET', 65_537, 3],
    ['DELETE', 1, 3],
    ['PATCH', 0, 3],
    ['LIST', 0, 3],
    ['POST', 1_000_000, 5 + 16],
    ['PUT', 1_048_576, 21],
    ['PURGE', 0, 1],
    ['constructor', 0, 1],
  ])('%s of %i bytes costs %i', (method, bytes, cost) => {
    expect(costBySize(method, bytes)).toBe(cost);
  });

  it('takes bases of your own', () => {
    expect(costBySize('GET', 1024, { GET: 3 })).toBe(4);
    expect(costBySize('PUT', 1024, { GET: 3 })).toBe(6);
  });

  it('refuses what is no size, no method and no base', () => {
    expect(() => costBySize('GET', -1)).toThrow(errorWith({ field: 'bytes' }));
    expect(() => costBySize('GET', NaN)).toThrow(errorWith({ field: 'bytes' }));
    expect(() => costBySize('GET', Infinity)).toThrow(errorWith({ field: 'bytes' }));
    expect(() => costBySize('', 1)).toThrow(errorWith({ field: 'method' }));
    expect(() => costBySize('GET', 1, { GET: 0.5 })).toThrow(errorWith({ field: 'bases.GET' }));
  });
});
