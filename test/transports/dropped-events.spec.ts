import { Logger } from '@nestjs/common';
import { DroppedEvents } from '../../lib/transports/rpc/dropped-events.js';
import { ManualClock } from '../support/manual-clock.js';

describe('DroppedEvents', () => {
  const lines: string[] = [];

  beforeAll(() => {
    const ignore = (): void => undefined;
    Logger.overrideLogger({ log: ignore, error: ignore, warn: (text: string) => lines.push(text) });
  });
  beforeEach(() => {
    lines.length = 0;
  });
  afterAll(() => {
    Logger.overrideLogger(false);
  });

  it('counts by handler', () => {
    const dropped = new DroppedEvents(new ManualClock());
    expect([dropped.total, dropped.byHandler()]).toEqual([0, {}]);
    for (const handler of ['A.a', 'B.b', 'A.a']) dropped.add(handler);
    expect([dropped.total, dropped.byHandler()]).toEqual([3, { 'A.a': 2, 'B.b': 1 }]);
  });

  it('tells of each handler once a minute, and then how many there were', () => {
    const clock = new ManualClock();
    const dropped = new DroppedEvents(clock);
    for (let second = 0; second < 120; second++) {
      for (let i = 0; i < 100; i++) dropped.add('A.a');
      clock.advance(1000);
    }
    dropped.add('B.b');
    expect(lines).toEqual([
      'A.a: 1 event over the limit dropped',
      'A.a: 6000 events over the limit dropped',
      'B.b: 1 event over the limit dropped',
    ]);
  });
});
