import { DegradationCore } from '../../lib/degradation/core/degradation-core.js';
import { checkDegradation, type DegradationInput } from '../../lib/degradation/core/options.js';
import { ManualClock } from '../support/manual-clock.js';
import { errorWith } from '../support/errors.js';

describe('the options of degradation', () => {
  it('have the figures of the source by default', () => {
    expect(checkDegradation()).toMatchObject({
      level1TtlMs: 30_000,
      level2TtlMs: 300_000,
      level1TimeoutMs: 50,
      recovery: {
        probeIntervalMs: 10_000,
        successThreshold: 3,
        steps: [10, 30, 50, 100],
        tolerance: 0,
      },
    });
  });

  it('of a resource are laid over the common ones', () => {
    const { resources } = checkDegradation({
      recovery: { minCalls: 5, tolerance: 0.1 },
      resources: { db: { recovery: { minCalls: 7 } } },
    });
    expect(resources.get('db')?.recovery).toMatchObject({ minCalls: 7, tolerance: 0.1 });
  });

  it.each<[DegradationInput | object, string]>([
    [{ level1Ttl: 'soon' }, 'degradation.level1Ttl'],
    [{ level2TTL: '5m' }, 'degradation.level2TTL'],
    [{ refreshAfter: 0 }, 'degradation.refreshAfter'],
    [{ maxEntries: 0 }, 'degradation.maxEntries'],
    [{ maxBytes: 1.5 }, 'degradation.maxBytes'],
    [{ maxReads: -1 }, 'degradation.maxReads'],
    [{ coreFields: 'name' }, 'degradation.coreFields'],
    [{ coreFields: [''] }, 'degradation.coreFields'],
    [{ recovery: { steps: [] } }, 'degradation.recovery.steps'],
    [{ recovery: { steps: [10, 30] } }, 'degradation.recovery.steps'],
    [{ recovery: { steps: [30, 10, 100] } }, 'degradation.recovery.steps'],
    [{ recovery: { steps: [0, 100] } }, 'degradation.recovery.steps'],
    [{ recovery: { tolerance: 1 } }, 'degradation.recovery.tolerance'],
    [{ recovery: { tolerance: NaN } }, 'degradation.recovery.tolerance'],
    [{ recovery: { errorRate: 0 } }, 'degradation.recovery.errorRate'],
    [{ recovery: { probes: 3 } }, 'degradation.recovery.probes'],
    [{ resources: { db: { mode: 'off' } } }, 'degradation.resources.db.mode'],
    [{ resources: { db: { level: 2 } } }, 'degradation.resources.db.level'],
    [{ resources: { db: { mode: 'forced', level: 5 } } }, 'degradation.resources.db.level'],
    [{ resources: { db: { recovery: { slow: 0 } } } }, 'degradation.resources.db.recovery.slow'],
    [{ resources: { '': {} } }, 'degradation.resources'],
    [{ resources: [] }, 'degradation.resources'],
  ])('%j: names the fault', (input, field) => {
    expect(() => checkDegradation(input as DegradationInput)).toThrow(errorWith({ field }));
  });

  it('that cannot work change nothing: prepare throws before anything is put into effect', () => {
    const core = new DegradationCore({ clock: new ManualClock(), nodeId: 'a' });
    expect(() => core.prepare({ level1Ttl: '60s', maxReads: 0 })).toThrow('degradation.maxReads');
    const commit = core.prepare({ resources: { db: { mode: 'forced' } } });
    expect(core.recoveries.of('db').phase).toBe('normal');
    commit();
    expect(core.recoveries.of('db').phase).toBe('forced');
    core.close();
  });
});
