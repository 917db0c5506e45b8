import { roomOf } from '../../lib/dashboard/room.js';
import { type AppState, type QuotaState } from '../../lib/observability/state.js';

describe('the room that limits of apps have', () => {
  const app = (name: string, guaranteed: number, burst: number): AppState => ({
    ...{ app: name, guaranteed, burst, priority: 2, used: 88, denied: 0, demand: undefined },
    ...{ outstanding: undefined, nodes: 3, modes: {} },
  });
  const apps = [app('search', 100, 200), app('all', 230, 500)];
  const of = (more: Partial<QuotaState> = {}, isAway = false, isShort = false) =>
    roomOf({
      quota: {
        ...{ capacity: 500, demand: 0, stock: 0, depth: 0, outstanding: 0, overloaded: false },
        ...{ apps, ...more },
      },
      ...{ reservedRatio: 0.1, isAway, isShort },
    });

  it('is what is left to promise, for one of them or among them, and up to the capacity', () => {
    expect(of()).toEqual({
      note: 'Yes: 330 of 450/s (90 % of the capacity) are promised, so 120/s more can be, to one app or among them; a ceiling may go up to the capacity.',
      apps: [
        { app: 'search', promise: [100, 220], ceiling: [200, 500] },
        { app: 'all', promise: [230, 350], ceiling: [500, 500] },
      ],
    });
    expect(of({ apps: apps.slice(1) })!.note).toBe(
      'Yes: 230 of 450/s (90 % of the capacity) are promised, so 220/s more can be; all ceilings are at the capacity.',
    );
  });

  it('is none where all is promised, and none while a change would not help', () => {
    const full = of({ apps: [app('search', 450, 500)] })!;
    expect(full.note).toBe('No promise, as all of 450/s (90 % of the capacity) are given; all ceilings are at the capacity.'); // oxfmt-ignore
    expect(full.apps[0]!.promise).toEqual([450, 450]);
    expect(of({ overloaded: true }, false, true)).toEqual({
      ...{ note: 'Not now: the cluster is overloaded.', apps: [] },
    });
    // Where only a ceiling is in the way, it may be raised.
    expect(of({ overloaded: true })).toEqual(of());
    expect(of({}, true)).toEqual({
      ...{ note: 'Not now: Redis is away, and a change needs it.', apps: [] },
    });
  });

  it('is not told of where there is no cluster level', () => {
    expect([of({ capacity: undefined }), of({ apps: [] })]).toEqual([null, null]);
  });
});
