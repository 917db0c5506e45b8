import { join } from 'node:path';
import * as algorithms from 'nestjs-weir/algorithms';
import { quotaWeight } from '../../lib/algorithms/quota/quota-limits.js';
import { checkRecovery, DegradationOptions } from '../../lib/degradation/core/options.js';
import * as machine from '../../lib/degradation/core/recovery-reducer.js';
import { RedisStoreOptions } from '../../lib/limiter/options.js';
import { ClusterOptions, LocalOptions } from '../../lib/limiter/quota-options.js';
import { OverloadOptions } from '../../lib/overload/settings.js';
import { root } from '../setup/ensure-built.js';
import { readPage } from './markdown.js';

type Draw = (parts: object, rules?: object) => string;

const HINT = '<!-- Run: npm run pictures -->\n';

const DRAWINGS = ['request', 'hierarchy', 'overload'] as const;

describe('pictures that the library draws', () => {
  let draw: Record<`${'algorithms' | 'recovery' | (typeof DRAWINGS)[number]}Picture`, Draw>;

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

  it.each(DRAWINGS)('of the %s have the figures of the options', (name) => {
    const defaults = {
      ...{ store: new RedisStoreOptions(), degradation: new DegradationOptions() },
      ...{ cluster: new ClusterOptions(), local: new LocalOptions() },
      ...{ overload: new OverloadOptions(), weights: [0, 1, 2, 3].map(quotaWeight) },
    };
    expect(HINT + readPage(`docs/${name}.svg`)).toBe(HINT + draw[`${name}Picture`](defaults));
  });
});
