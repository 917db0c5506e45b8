import { topFrame, topText, VIEWS, type TopState } from '../../lib/cli/top-frame.js';
import { decodeMerged, encodeMerged } from '../../lib/observability/fleet/merged.js';
import { isShort, limitedKeysOf, limitedOf } from '../../lib/observability/limited.js';
import { type FleetState } from '../../lib/observability/state.js';
import { verdict } from '../../lib/observability/verdict.js';
import { damagedStates, troubledFleet } from './damaged-states.js';
import { quietFleet } from './snapshots.js';

const encoded = (state: FleetState, more: object = {}): string =>
  JSON.stringify({ v: 1, ...state, ...more });

describe('the fleet on the board', () => {
  it('is read as it was written', () => {
    for (const fleet of [quietFleet(), troubledFleet()]) {
      const plain: unknown = JSON.parse(JSON.stringify(fleet));
      expect(decodeMerged(encodeMerged(fleet))).toEqual(plain);
    }
    // What a newer version adds is no fault; nor is a figure that there is none of.
    expect(decodeMerged(encoded(quietFleet(), { added: 1 }))).toMatchObject({ added: 1 });
    const [alert] = troubledFleet().alerts;
    const none = { ...alert!, value: NaN };
    expect(decodeMerged(encoded(quietFleet({ alerts: [none] })))).toMatchObject({ leader: 'a' });
  });

  it('is not read where it is of another version, damaged or too long', () => {
    expect(decodeMerged('{"v":2,"nodes":[],"series":[]}')).toBe('other version');
    for (const text of ['', '{', 'null', '7', '[]', '{}', '{"v":"1"}']) {
      expect(decodeMerged(text)).toBe('damaged');
    }
    expect(decodeMerged('{"v":1,"nodes":[],"series":[]}')).toBe('damaged');
    expect(decodeMerged(encoded(quietFleet({ cluster: 'x'.repeat(1_000_000) })))).toBe('damaged');
  });

  it('throws nowhere, whatever of it is damaged', () => {
    const frame: TopState = {
      ...{ fleet: undefined, rates: [1], ageS: 0, fault: undefined, view: 'overview' },
      ...{ sortBy: undefined, filter: '', isTyping: false, isPaused: false, showsHelp: false },
    };
    let [read, ignored] = [0, 0];
    for (const { path, text } of damagedStates()) {
      const fleet = decodeMerged(text);
      if (typeof fleet === 'string') {
        ignored++;
        continue;
      }
      read++;
      const shown = (): void => {
        verdict(fleet);
        isShort(fleet);
        limitedOf(fleet, () => undefined);
        limitedKeysOf(fleet, () => undefined);
        for (const view of VIEWS) topFrame({ ...frame, fleet, view }, 80, 24);
        topText({ ...frame, fleet });
      };
      expect(shown, path).not.toThrow();
    }
    expect(ignored).toBeGreaterThan(500);
    expect(read).toBeGreaterThan(100);
  });
});
