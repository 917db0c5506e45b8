import { join } from 'node:path';
import * as algorithms from 'nestjs-weir/algorithms';
import { checkRecovery } from '../../lib/degradation/core/options.js';
import * as machine from '../../lib/degradation/core/recovery-reducer.js';
import { root } from '../setup/ensure-built.js';
import { readPage } from './markdown.js';

type Draw = (parts: object, rules?: object) => string;

const HINT = '<!-- Run: npm run pictures -->\n';

describe('pictures that the library draws', () => {
  let draw: { algorithmsPicture: Draw; recoveryPicture: Draw };

  beforeAll(async () => {
    draw = (await import(join(root, 'scripts/support/pictures.mjs'))) as typeof draw;
  });

  it('of the algorithms are what they do', () => {
    expect(HINT + readPage('docs/algorithms.svg')).toBe(HINT + draw.algorithmsPicture(algorithms));
  });

  it('of recovery are what the machine does', () => {
    const rules = { ...checkRecovery({}, 'recovery'), jitter: () => 1 };
    expect(HINT + readPage('docs/recovery.svg')).toBe(HINT + draw.recoveryPicture(machine, rules));
  });
});
