import { Frames, type FrameParts } from '../../lib/dashboard/frames.js';
import { usualOf } from '../../lib/dashboard/usual.js';
import { type FleetState, type MonitorState } from '../../lib/observability/state.js';
import { quietFleet } from '../observability/snapshots.js';
import { ManualClock } from '../support/manual-clock.js';

const SEEN_MS = 1_800_000_000_000;
const node = (name: string, isSilent = false): FleetState['nodes'][number] => ({
  ...{ node: name, rate: 90, denied: 0, revision: 42, storeIsUp: true, isSilent },
});

/** A process of three, whose Redis can go away. */
function stand() {
  const clock = new ManualClock();
  const fleet = quietFleet({
    ...{ nodeCount: 4, atMs: SEEN_MS, store: { isUp: true, awayNodes: 0, sinceMs: undefined } },
    nodes: [node('api-1'), node('api-2'), node('api-3'), node('api-4', true)],
  });
  const known = { own: { ...fleet, nodeId: 'api-1', nodeCount: 3 } as MonitorState, fleet };
  let histories = 0;
  const minutes = { rate: Array(20).fill(100), denied: Array(20).fill(2) };
  const parts = {
    monitor: {
      state: () => known.own,
      fleet: () => Promise.resolve(known.fleet),
      fleetHistory: () => {
        histories++;
        return Promise.resolve(minutes);
      },
      history: () => undefined,
    },
    limiter: {
      redis: { timeoutMs: 20 },
      stats: () => ({ policies: {} }),
      policyNames: () => [],
    },
    config: { current: () => ({ revision: 0, profile: 'normal', document: {} }) },
    protection: { stats: () => ({}) },
    ...{ degradation: () => undefined, overload: () => undefined, viewers: () => 1 },
    ...{ clock, build: '', canWrite: false, actions: [] },
  };
  const goAway = (): void => {
    const store = { isUp: false, awayNodes: 1, sinceMs: SEEN_MS };
    known.own = { ...known.own, store };
  };
  return { clock, goAway, histories: () => histories, frames: new Frames(parts as unknown as FrameParts) }; // oxfmt-ignore
}

describe('a frame of the page', () => {
  it('keeps the names of nodes that cannot be seen while Redis is away, and when they were', async () => {
    const { frames, goAway } = stand();
    const before = await frames.frame();
    expect([before.scope, before.unseen, before.nodes.length]).toEqual(['fleet', null, 4]);
    goAway();
    const after = await frames.frame();
    expect([after.scope, after.nodes.map((one) => one.node)]).toEqual(['process', ['api-1']]);
    // A node that was silent before is not missed.
    expect(after.unseen).toEqual({ count: 2, names: ['api-2', 'api-3'], seenMs: SEEN_MS });
  });

  it('says how many there were if it has seen none of them', async () => {
    const { frames, goAway } = stand();
    goAway();
    expect((await frames.frame()).unseen).toEqual({ count: 2, names: [], seenMs: null });
  });

  it('has what is usual, read once a minute and not while Redis is away', async () => {
    const { frames, clock, goAway, histories } = stand();
    const first = await frames.frame();
    expect([first.usual, first.storeTimeoutMs]).toEqual([{ denied: 2, part: 0.02 }, 20]);
    await frames.frame();
    expect(histories()).toBe(1);
    clock.advance(61_000);
    await frames.frame();
    expect(histories()).toBe(2);
    goAway();
    clock.advance(61_000);
    expect((await frames.frame()).usual).toEqual(first.usual);
    expect(histories()).toBe(2);
  });
});

describe('what is usual', () => {
  it('is the middle of a quarter of an hour, before what happens now', () => {
    const denied = [900, ...Array<number>(9).fill(1), 50, ...Array<number>(5).fill(3), 700];
    const rate = denied.map(() => 100);
    expect(usualOf({ rate, denied })).toEqual({ denied: 1, part: 0.01 });
  });

  it('is not known from two whole minutes, nor from minutes without a request', () => {
    const denied = [0, 0, 0];
    expect(usualOf({ rate: [10, 10, 10], denied })).toBeNull();
    expect(usualOf({ rate: [null, 0, 10, 10, 10], denied: [null, 0, ...denied] })).toBeNull();
    expect(usualOf({ rate: [10, 10, 10, 10], denied: [...denied, 0] })).toEqual({
      ...{ denied: 0, part: 0 },
    });
  });
});
