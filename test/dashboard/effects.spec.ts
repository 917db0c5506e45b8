import { effectsOf } from '../../lib/dashboard/effects.js';

describe('what a change would do', () => {
  const app = (name: string, deniedBefore: number, deniedAfter: number) => ({
    ...{ app: name, peakDemand: 120, demand: 100, deniedBefore, deniedAfter },
    ...{ minutesBefore: 1, minutesAfter: 1 },
  });
  const login = {
    ...{ policy: 'login', change: 'removed' as const, peak: 9, rate: 2, denied: 0.25 },
  };

  it('is told app by app, and warns of those who lose', () => {
    const apps = [app('search', 0, 20), app('reports', 10, 0), app('checkout', 1, 1.2)];
    expect(effectsOf({ minutes: 60, apps, policies: [] })).toEqual([
      { isWarning: true, text: 'search: 0 % denied → 20 %, in 1 minute of 60' },
      { isWarning: false, text: 'reports: 10 % denied → 0 %, in 1 minute of 60' },
    ]);
  });

  it('says that no app is affected, that nothing is known, and how much a policy is used', () => {
    expect(effectsOf({ minutes: 60, apps: [], policies: [login] })).toEqual([
      {
        isWarning: false,
        text: 'The last 60 minutes replayed: no app would have been denied more or less.',
      },
      {
        isWarning: true,
        text: 'login is removed: 2/s asked, 25 % denied so far. Keys are not kept, so who would be denied is not known.',
      },
    ]);
    const [unknown] = effectsOf({ minutes: 0, apps: [], policies: [] });
    expect(unknown!.text).toBe('No minute is known yet to replay.');
  });
});
