import { announceCopy } from '../../lib/copies.js';

describe('copies of the package in one process', () => {
  const COPIES = Symbol.for('nestjs-weir.copies');
  const global = globalThis as { [COPIES]?: Set<string> };
  let before: Set<string> | undefined;
  beforeEach(() => {
    before = global[COPIES];
    delete global[COPIES];
  });
  afterEach(() => void (global[COPIES] = before!));

  const told = (...copies: string[]): string[] => {
    const messages: string[] = [];
    for (const copy of copies) announceCopy(copy, (message) => messages.push(message));
    return messages;
  };

  it('are not told of if there is one, however often it is loaded', () => {
    expect(told('/app/node_modules/nestjs-weir/', '/app/node_modules/nestjs-weir/')).toEqual([]);
  });

  it('are told of once, with the command that finds them', () => {
    const [one, two] = ['/app/node_modules/nestjs-weir/', '/lib/node_modules/nestjs-weir/'];
    expect(told(one, two, one, two, '/third/')).toEqual([
      `nestjs-weir is loaded twice, from ${one} and ${two}, and they share no limits: ` +
        'npm ls nestjs-weir, then npm dedupe',
    ]);
  });
});
