import { type AppReply } from '../../lib/algorithms/quota/quota-protocol.js';
import { AppTokens } from '../../lib/local/app-tokens.js';

const SETTINGS = { guaranteed: 1000, burst: 2000, maxCost: 1 };

/** The debt of an app to the store, of 50 tokens that passed without it so long ago. */
function owedAfter(micros: number, fillMicros: number, storeFillMicros: number): number {
  const app = new AppTokens(0, 'a', { ...SETTINGS, fillMicros, storeFillMicros });
  for (let i = 0; i < 50; i++) {
    expect(app.offline.take(1, 0)).toBe(true);
    app.passAway(1, 0);
  }
  return app.write([], 0, 0, false, micros).owed ?? 0;
}

describe('tokens that passed while the store was away', () => {
  it("are owed until the store's bucket has had the time to fill, however deep the share is", () => {
    for (const fillMicros of [60_000, 200_000, 5_000_000]) {
      expect(owedAfter(199_999, fillMicros, 200_000)).toBe(50);
      expect(owedAfter(200_000, fillMicros, 200_000)).toBe(0);
    }
  });

  it('are owed after that as far as the share has not got them back', () => {
    // Of 0.9 × 1000 tokens a second.
    expect(owedAfter(20_000, 1_000_000, 20_000)).toBe(50 - 18);
  });
});

describe('the nodes of an app', () => {
  const SECOND = 1_000_000;
  const settings = { ...SETTINGS, fillMicros: 200_000, storeFillMicros: 200_000 };
  /** An app whose last reply, at the instant 0, knew of twelve nodes. */
  const stand = (): AppTokens => {
    const app = new AppTokens(0, 'a', settings);
    const reply = { granted: 0, needs: [], nodes: 12, shortage: 'none', retryAfterMicros: 0 };
    app.applyReply(reply as unknown as AppReply, [], 0, 0);
    return app;
  };

  it('are those that call, as long as the reply that says so is not old', () => {
    const app = stand();
    app.shareWith(3, true, 9 * SECOND);
    expect(app.nodes).toBe(12);
    app.shareWith(3, true, 11 * SECOND);
    expect(app.nodes).toBe(3);
  });

  it('stay as they are while the store is away, and where it has only begun to count', () => {
    const app = stand();
    app.shareWith(12, true, SECOND);
    app.shareWith(1, false, 60 * SECOND);
    expect(app.nodes).toBe(12);
  });
});
