import { type Changes, withChanges } from '../../lib/dashboard/changes.js';
import { Frames, type FramesDeps } from '../../lib/dashboard/frames.js';
import { usualOf } from '../../lib/dashboard/usual.js';
import { type Alert } from '../../lib/observability/alerts/alert.js';
import {
  type FleetState,
  type MonitorState,
  type ShownKey,
} from '../../lib/observability/state.js';
import { decodeMerged } from '../../lib/observability/fleet/merged.js';
import { damagedStates } from '../observability/damaged-states.js';
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
  const { nodes: _nodes, ...shared } = fleet;
  const known: { own: MonitorState; fleet: FleetState | undefined } = {
    own: { ...shared, nodeId: 'api-1', nodeCount: 3 },
    fleet,
  };
  const merged: { last?: FleetState } = {};
  const past: { revision: number; by: string | null; atMs: number; kind: string; diff: object }[] =
    [];
  const policyNames: string[] = [];
  let histories = 0;
  const minutes = {
    ...{ startMs: SEEN_MS, stepMs: 60_000, rate: Array(20).fill(100) },
    denied: [...Array<number>(7).fill(2), ...Array<number>(13).fill(30)],
  };
  const parts = {
    monitor: {
      state: () => known.own,
      lastFleet: () => merged.last,
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
      policyNames: () => policyNames,
      policy: () => ({ base: { capacity: 5, windowMs: 60_000 }, failureMode: 'local' }),
    },
    config: {
      current: () => ({ revision: past[0]?.revision ?? 0, profile: 'normal', document: {} }),
      history: () => Promise.resolve(past),
    },
    protection: { stats: () => ({}) },
    ...{ degradation: () => undefined, overload: () => undefined, viewers: () => 1 },
    ...{ clock, build: '', canWrite: false, actions: [] },
  };
  const goAway = (): void => {
    const store = { isUp: false, awayNodes: 1, sinceMs: SEEN_MS };
    known.own = { ...known.own, store };
  };
  /** Redis answers again, and nobody has merged anything since. */
  const comeBack = (): void => {
    const sinceMs = clock.epochMs(clock.now());
    known.own = { ...known.own, store: { isUp: true, awayNodes: 0, sinceMs } };
    known.fleet = undefined;
  };
  const merge = (...names: string[]): void => {
    const nodes = names.map((name) => node(name));
    known.fleet = { ...fleet, nodes, atMs: clock.epochMs(clock.now()) };
  };
  const deny = (source: ShownKey['source']): void => {
    const deniedKeys = [{ policy: 'login', key: '1a2b3c4d', denied: 30, source }];
    known.own = { ...known.own, deniedKeys };
    known.fleet = { ...known.fleet!, deniedKeys };
  };
  const give = (guarantees: Record<string, number>): void => {
    const apps = Object.entries(guarantees).map(([app, guaranteed]) => ({ app, guaranteed, nodes: 3, modes: {}, denied: 0 })); // oxfmt-ignore
    known.own = { ...known.own, quota: { apps } as unknown as MonitorState['quota'] };
  };
  const alarm = (...alerts: Partial<Alert>[]): void => {
    known.fleet = { ...known.fleet!, alerts: alerts as Alert[] };
  };
  const own = (state: object): void => {
    known.own = { ...known.own, ...state };
    known.fleet &&= { ...known.fleet, ...state };
  };
  const revise = (revision: number, by: string | null = 'ada', kind = 'update'): void => {
    const changed =
      kind === 'update' ? [{ path: 'apps.search.guaranteed', before: 100, after: 140 }] : [];
    const atMs = clock.epochMs(clock.now());
    past.unshift({ revision, by, atMs, kind, diff: { changed, added: [], removed: [] } });
    own({ config: { revision, behind: 1 } });
  };
  /** What the others have told by the last merge. */
  const mergedRevision = (revision: number, behind = 0, heard = 4): void => {
    known.fleet = { ...known.fleet!, config: { revision, behind, heard } };
  };
  const show = (shown: FleetState): void => void (known.fleet = shown);
  return { show, policyNames, revise, mergedRevision, clock, goAway, comeBack, merge, deny, give, alarm, own, merged, fleet, histories: () => histories, frames: new Frames(parts as unknown as FramesDeps) }; // oxfmt-ignore
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
    const { count, nodes, seenMs } = after.unseen!;
    expect({ count, nodes, seenMs }).toEqual({
      ...{ count: 2, nodes: [node('api-2'), node('api-3')], seenMs: SEEN_MS },
    });
  });

  it('says where the last revision is in force, and what else is known', async () => {
    const { frames, goAway, revise, mergedRevision, alarm } = stand();
    const of = async () => {
      const { reached, aside } = await frames.frame();
      return [reached, aside];
    };
    revise(42);
    mergedRevision(42);
    expect(await of()).toEqual([
      'on all nodes',
      'Redis answers; no alert fires; every node has the latest configuration.',
    ]);
    revise(43);
    alarm({ rule: 'peak', state: 'firing', value: 2, threshold: 1 });
    expect(await of()).toEqual([
      'on 3 of 4 nodes',
      'Redis answers; alerts: 1 firing; 1 of 4 nodes has an earlier configuration.',
    ]);
    goAway();
    expect((await of())[0]).toBe('here, not known of others');
  });

  it('says of the others only what they have told of that very revision', async () => {
    const { frames, revise, mergedRevision } = stand();
    const of = async () => {
      const { reached, news, aside, change } = await frames.frame();
      return [change!.revision, reached, news, /; ([^;]*)\.$/.exec(aside)![1]];
    };
    revise(43);
    // The merge is of a second ago.
    mergedRevision(42);
    expect(await of()).toEqual([
      43,
      'here, not yet known of the others',
      'Revision 43 by ada is in force here, not yet known of the others: search promised 100 → 140.',
      'the others have not told yet whether they have revision 43',
    ]);
    mergedRevision(43);
    expect((await of())[1]).toBe('on all nodes');
    // Another process was quicker, and this one has not heard of it.
    mergedRevision(44, 1);
    expect(await of()).toEqual([
      43,
      'here; revision 44 is on 3 of 4 nodes',
      '',
      '1 of 4 nodes has an earlier configuration',
    ]);
  });

  it('does not count a silent node among those that have it', async () => {
    const { frames, revise, mergedRevision } = stand();
    revise(43);
    const of = async (behind: number, heard: number) => {
      mergedRevision(43, behind, heard);
      const { reached, aside } = await frames.frame();
      return [reached, /; ([^;]*)\.$/.exec(aside)![1]];
    };
    expect(await of(0, 4)).toEqual(['on all nodes', 'every node has the latest configuration']);
    expect(await of(0, 3)).toEqual([
      'on 3 of 4 nodes, 1 is silent',
      'every node that speaks has the latest configuration',
    ]);
    expect(await of(1, 2)).toEqual([
      'on 1 of 4 nodes, 2 are silent',
      '1 of 4 nodes has an earlier configuration',
    ]);
  });

  it('is made of whatever passes as a fleet', async () => {
    const { frames, show } = stand();
    let seen = 0;
    for (const { path, text } of damagedStates()) {
      const fleet = decodeMerged(text);
      if (typeof fleet === 'string') continue;
      show(fleet);
      seen++;
      await frames.frame().catch((error: unknown) => expect.fail(`${path}: ${String(error)}`));
    }
    expect(seen).toBeGreaterThan(100);
  });

  it('says nothing of others where it does not hear of them', async () => {
    const { frames, revise, comeBack, own } = stand();
    revise(43);
    comeBack();
    // Without a fleet, or before the first merge, nothing says when Redis last went away.
    own({ store: { isUp: true, awayNodes: 0, sinceMs: undefined } });
    expect((await frames.frame()).reached).toBe('here, not known of others');
    own({ store: undefined, nodeCount: 1 });
    expect((await frames.frame()).reached).toBe('here');
  });

  it('says of a change what it does and how far it has come, for two minutes', async () => {
    const { frames, clock, revise } = stand();
    // That which began it all is no news.
    revise(1);
    expect((await frames.frame()).news).toBe('');
    revise(43);
    const told = 'is in force on 3 of 4 nodes: search promised 100 → 140.';
    expect((await frames.frame()).news).toBe(`Revision 43 by ada ${told}`);
    clock.advance(121_000);
    expect((await frames.frame()).news).toBe('');
    revise(44, null);
    expect((await frames.frame()).news).toBe(`Revision 44 ${told}`);
    // Nothing is in force that was not before.
    for (const kind of ['stage', 'cancel']) {
      revise(45, 'ada', kind);
      const { news, change } = await frames.frame();
      expect([news, change!.revision]).toEqual(['', 45]);
    }
  });

  it('keeps them after Redis is back until they are merged again, and does not call that calm', async () => {
    const { clock, frames, goAway, comeBack, merge } = stand();
    await frames.frame();
    goAway();
    await frames.frame();
    comeBack();
    const told = async () => {
      const { scope, verdict, nodes, unseen } = await frames.frame();
      return [scope, verdict.kind, nodes.length, unseen?.nodes.length];
    };
    const { verdict, unseen } = await frames.frame();
    expect(verdict).toMatchObject({
      ...{ kind: 'store', level: 'info' },
      text: 'Redis answers again; the other 2 nodes have not told their figures yet.',
    });
    expect(unseen!.said).toMatch(/: 2 other nodes have told nothing since Redis is back\. All 3/);
    expect(await told()).toEqual(['process', 'store', 1, 2]);
    // The one that merges knows itself first.
    clock.advance(3000);
    merge('api-1', 'api-2');
    expect(await told()).toEqual(['process', 'store', 1, 2]);
    merge('api-1', 'api-2', 'api-3');
    expect(await told()).toEqual(['fleet', 'quiet', 3, undefined]);
  });

  it('does not wait for nodes that were gone when Redis came back, and tells what is wrong', async () => {
    const { clock, frames, goAway, comeBack, merge, own } = stand();
    await frames.frame();
    goAway();
    await frames.frame();
    comeBack();
    own({ resources: [{ resource: 'db', breaker: 'open', openNodes: 1 }] });
    merge('api-1', 'api-2');
    expect((await frames.frame()).verdict.kind).toBe('breaker');
    clock.advance(31_000);
    const { scope, unseen } = await frames.frame();
    expect([scope, unseen]).toEqual(['fleet', null]);
  });

  it('says of the total what it knows: of this node, of all when they were seen, and the most of shares', async () => {
    const { frames, goAway, give, own } = stand();
    await frames.frame();
    goAway();
    own({ series: [{ name: 'total', rate: 95 }] });
    const alone =
      'All figures are of this node alone, which decides 95/s: 2 other nodes cannot be seen until Redis is back.';
    const before = ' All 3 nodes together decided 46k/s when they were last seen, at 08:00 UTC.';
    expect((await frames.frame()).unseen!.said).toBe(alone + before);
    give({ checkout: 180, search: 100 });
    const most = ' Their shares together allow apps 252 tokens/s at most.';
    expect((await frames.frame()).unseen!.said).toBe(alone + before + most);
  });

  it('has the breakers that are open on a node by itself, and no marks that no chart shows', async () => {
    const { frames, goAway, own } = stand();
    const marks = ['quota', 'breaker'].map((kind) => ({ atMs: SEEN_MS, kind, text: kind }));
    const resources = ['open', 'half-open', 'closed'].map((breaker) => {
      return { resource: `db ${breaker}`, breaker, openNodes: breaker === 'closed' ? 0 : 1 };
    });
    own({ marks, resources });
    goAway();
    const { nodes, state } = await frames.frame();
    expect(nodes[0]!.open).toEqual(['db open', 'db half-open']);
    expect(state.marks.map(({ kind }) => kind)).toEqual(['breaker']);
  });

  it('has the share of this node of each app while Redis is away, and only then', async () => {
    const { frames, goAway, give } = stand();
    give({ checkout: 180, search: 100 });
    expect((await frames.frame()).shares).toBeNull();
    goAway();
    expect((await frames.frame()).shares).toEqual({ checkout: 54, search: 30 });
  });

  it('says why keys are denied: by their limit, and by the share of this node while Redis is away', async () => {
    const { frames, goAway, deny } = stand();
    deny('store');
    const why = async () => (await frames.frame()).limited.map((one) => one.why);
    expect(await why()).toEqual(['more than 5/min by this key']);
    goAway();
    deny('fallback');
    expect(await why()).toEqual(['Redis is away; this node has a share of the limit of 5/min']);
  });

  it('says how many there were if it has seen none of them', async () => {
    const { frames, goAway } = stand();
    goAway();
    expect((await frames.frame()).unseen).toEqual({
      ...{ count: 2, nodes: [], seenMs: null },
      said: 'All figures are of this node alone, which decides 46k/s: 2 other nodes cannot be seen until Redis is back.',
    });
  });

  it('knows the others by what it has merged itself, where nobody had looked before', async () => {
    const { frames, goAway, merged, fleet } = stand();
    goAway();
    merged.last = { ...fleet, atMs: SEEN_MS + 1 };
    const { unseen } = await frames.frame();
    expect(unseen!.nodes.map((one) => one.node)).toEqual(['api-2', 'api-3']);
    expect(unseen!.seenMs).toBe(SEEN_MS + 1);
  });

  it('has of many policies those that are asked most, in the order of the document, and tells how many there are', async () => {
    const { frames, own, policyNames } = stand();
    policyNames.push(...Array.from({ length: 1200 }, (_, index) => `p${index}`));
    // As many as there is room for, beside one: the least of them has to go.
    const named = policyNames.slice(-201);
    own({ series: named.map((name, index) => ({ name: `policy:${name}`, rate: 201 - index })) });
    const { policies, policyCount } = await frames.frame();
    expect(policies.map(({ name }) => name)).toEqual(named.slice(0, 200));
    expect(policyCount).toBe(1200);
    own({ series: [{ name: 'policy:p999', rate: 0 }] });
    const few = (await frames.frame()).policies.map(({ name }) => name);
    expect(few).toEqual([...policyNames.slice(0, 199), 'p999']);
  });

  it('has what is usual, read once a minute and not while Redis is away', async () => {
    const { frames, clock, goAway, histories } = stand();
    const first = await frames.frame();
    expect([first.usual, first.storeTimeoutMs]).toEqual([{ denied: 30, part: 0.3 }, 20]);
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

  it.each([
    ['denialRise', 'total', 0.02],
    ['overload', 'total', 0.02],
    ['denialRise', 'policy:login', 0.3],
  ])('remembers an incident after its alert: %s of %s', async (rule, series, part) => {
    const { frames, clock, alarm } = stand();
    alarm({ rule, series, state: 'firing', sinceMs: SEEN_MS + 8 * 60_000 });
    await frames.frame();
    alarm({ rule, series, state: 'resolved', sinceMs: SEEN_MS + 8 * 60_000, endedMs: SEEN_MS + 20 * 60_000 }); // oxfmt-ignore
    await frames.frame();
    alarm();
    clock.advance(61_000);
    expect((await frames.frame()).usual?.part).toBe(part);
  });
});

describe('what is usual', () => {
  const MINUTE_MS = 60_000;
  const past = (denied: readonly (number | null)[], asked: number | null = 100) => ({
    ...{ startMs: SEEN_MS, stepMs: MINUTE_MS, denied },
    rate: denied.map((one) => (one === null ? null : asked)),
  });
  const during = (first: number, last: number) => ({
    fromMs: SEEN_MS + first * MINUTE_MS,
    toMs: SEEN_MS + (last + 0.5) * MINUTE_MS,
  });

  it('is the middle of an hour, before what happens now', () => {
    const denied = [900, ...Array<number>(9).fill(1), 50, ...Array<number>(5).fill(3), 700];
    expect(usualOf(past(denied))).toEqual({ denied: 1, part: 0.01 });
    expect(usualOf(past([...Array<number>(99).fill(90), ...Array<number>(61).fill(1)]))).toEqual({
      ...{ denied: 1, part: 0.01 },
    });
  });

  it('is without the minutes of an incident', () => {
    const denied = [1, 1, 1, 1, 1, 40, 40, 40, 40, 40, 40, 40, 0];
    expect(usualOf(past(denied))?.part).toBe(0.4);
    expect(usualOf(past(denied), [during(5, 11)])).toEqual({ denied: 1, part: 0.01 });
    // The first alert of many comes in the middle of a minute, and all of that minute is the incident's.
    expect(usualOf(past(denied), [during(5.9, 11)])).toEqual({ denied: 1, part: 0.01 });
  });

  it('is not known from fewer than five calm minutes, nor from minutes without a request', () => {
    expect(usualOf(past([0, 0, 0, 0, 9]))).toBeNull();
    expect(usualOf(past([null, 0, 0, 0, 0, 9]))).toBeNull();
    expect(usualOf(past([0, 0, 0, 0, 0, 9], 0))).toBeNull();
    expect(usualOf(past([0, 0, 0, 0, 0, 9]))).toEqual({ denied: 0, part: 0 });
    expect(usualOf(past([0, 0, 0, 0, 0, 9]), [during(2, 2)])).toBeNull();
  });
});

describe('the events of a frame', () => {
  const dataOf = (event: Buffer): unknown =>
    JSON.parse(/^data: (.*)$/m.exec(event.toString())![1]!);

  it('are all of it, and what has changed since the one before', async () => {
    const { frames, clock, deny } = stand();
    const first = await frames.events();
    expect(first.state().toString()).toMatch(/^id: 1\nevent: state\ndata: \{.*\}\n\n$/);
    clock.advance(1000);
    deny('store');
    const second = await frames.events();
    expect(second.tick().toString()).toMatch(/^id: 2\nevent: tick\ndata: \{.*\}\n\n$/);
    const changes = dataOf(second.tick()) as Changes;
    expect(Object.keys(changes).sort()).toEqual(['limited', 'nowMs', 'state']);
    expect(withChanges(dataOf(first.state()), changes)).toEqual(dataOf(second.state()));
  });

  it('are those of the second that they were made in, whatever becomes of its figures', async () => {
    const { frames, clock, own } = stand();
    const series = [{ name: 'total', rate: 1.23456, denied: 0 }];
    own({ series });
    const first = await frames.events();
    series[0]!.rate = 2;
    expect(dataOf(first.state())).toMatchObject({ state: { series: [{ rate: 1.235 }] } });
    clock.advance(1000);
    const second = await frames.events();
    expect(dataOf(second.tick())).toMatchObject({ state: { series: { 0: { rate: [2] } } } });
  });

  it('do not tell of digits that nobody reads', async () => {
    const { frames, clock, own } = stand();
    own({ series: [{ name: 'total', rate: 1.23456 }] });
    await frames.events();
    clock.advance(1000);
    own({ series: [{ name: 'total', rate: 1.23459 }] });
    expect(dataOf((await frames.events()).tick())).not.toHaveProperty('state');
  });
});
