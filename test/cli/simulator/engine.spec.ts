import { type QuotaCall } from '../../../lib/algorithms/quota/quota-protocol.js';
import { StoreTimeoutError, StoreUnavailableError } from '../../../lib/common/errors.js';
import { type LimiterNode } from '../../../lib/cli/simulator/engine/contender.js';
import { SimulatedFleet } from '../../../lib/cli/simulator/engine/fleet.js';
import { Host } from '../../../lib/cli/simulator/engine/host.js';
import { Observations } from '../../../lib/cli/simulator/engine/observations.js';
import { seededRandom } from '../../../lib/cli/simulator/engine/seeded-random.js';
import { VirtualTime } from '../../../lib/cli/simulator/engine/virtual-time.js';
import { World } from '../../../lib/cli/simulator/engine/world.js';
import { oneApp, scaled } from '../../../lib/cli/simulator/scenarios/ground.js';

const QUOTA = oneApp(1000);
const newWorld = (): World => new World(QUOTA, 1, 1);

/** Asks for so many tokens to keep; `seq` tells calls of the node apart. */
function wanting(want: number, seq = 1, node = 'a'): QuotaCall {
  const apps = [{ app: 0, used: 0, returned: 0, demand: 0, needs: [], want }];
  return { node, incarnation: '1', seq, seenEpoch: 0, seenSequence: 0, leaving: false, apps };
}

const held = ({ store }: World): number => store.ledger.peek()!.cluster.outstanding / 1e6;

describe('virtual time', () => {
  it('runs what is due in order of time, and of being asked for', async () => {
    const time = new VirtualTime();
    const seen: string[] = [];
    for (const [ms, name] of [
      [30, 'd'],
      [10, 'a'],
      [20, 'b'],
      [20, 'c'],
      [40, 'too late'],
    ] as const) {
      time.after(ms, () => seen.push(`${name} ${Math.round(time.seconds() * 1000)}`));
    }
    await time.runUntil(0.035);
    expect(seen).toEqual(['a 10', 'b 20', 'c 20', 'd 30']);
    expect(time.seconds()).toBeCloseTo(0.035);
  });

  it('cancels, and repeats until it is told to stop, from within too', async () => {
    const time = new VirtualTime();
    let [ran, ticks] = [0, 0];
    time.after(5, () => ran++)();
    const stop = time.every(10, () => {
      if (++ticks === 3) stop();
    });
    await time.runUntil(1);
    expect([ran, ticks]).toEqual([0, 3]);
  });

  it('stays in order with many events', async () => {
    const time = new VirtualTime();
    const random = seededRandom(3);
    const seen: number[] = [];
    for (let i = 0; i < 2000; i++) time.after(random() * 1000, () => seen.push(time.now()));
    await time.runUntil(1);
    expect(seen).toHaveLength(2000);
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
  });
});

describe('the network', () => {
  /** The end of a call, and its milliseconds. */
  async function ends(world: World, cutAfterMs?: number): Promise<[unknown, number]> {
    const { network, time } = world;
    let end: [unknown, number] | undefined;
    const note = (what: unknown): unknown => (end = [what, time.seconds() * 1000]);
    network.call(() => 'served').then(note, note);
    if (cutAfterMs !== undefined) time.after(cutAfterMs, () => (network.state = 'silent'));
    await time.runUntil(1);
    return end!;
  }

  it('takes 0.4 to 2 ms there and back', async () => {
    const [answer, ms] = await ends(newWorld());
    expect(answer).toBe('served');
    expect(ms).toBeGreaterThan(0.4);
    expect(ms).toBeLessThan(2);
  });

  it('that is silent lets a call end at its deadline, also one that is on its way', async () => {
    const world = newWorld();
    world.network.state = 'silent';
    for (const [error, ms] of [await ends(world), await ends(newWorld(), 0.1)]) {
      expect(error).toBeInstanceOf(StoreTimeoutError);
      expect(ms).toBeCloseTo(20);
    }
  });

  it('that refuses fails at once, and not by a timeout', async () => {
    const world = newWorld();
    world.network.state = 'refused';
    const [error, ms] = await ends(world);
    expect(error).toBeInstanceOf(StoreUnavailableError);
    expect(error).not.toBeInstanceOf(StoreTimeoutError);
    expect(ms).toBeLessThan(1);
  });
});

describe('the store', () => {
  it('loses its state, and steps its clock', async () => {
    const world = newWorld();
    void world.store.settle(wanting(40));
    await world.time.runUntil(0.1);
    expect(held(world)).toBe(40);
    world.store.stepClock(30);
    void world.store.settle(wanting(10, 1, 'b'));
    await world.time.runUntil(0.2);
    expect(held(world)).toBe(10);
    expect(world.store.ledger.peek()!.cluster.lastMicros).toBeGreaterThan(31e6);
    world.store.lose();
    expect(world.store.ledger.peek()).toBeUndefined();
  });

  it('promotes a replica that has not heard of the last second', async () => {
    const world = newWorld();
    world.store.replicate(1);
    void world.store.settle(wanting(40));
    await world.time.runUntil(1.5);
    void world.store.settle(wanting(10, 1, 'b'));
    await world.time.runUntil(1.6);
    expect(held(world)).toBe(10);
    world.store.promoteReplica();
    expect(held(world)).toBe(40);
    await world.time.runUntil(3);
    expect(held(world)).toBe(40);
    expect(() => world.store.promoteReplica()).toThrow('no replica');
  });

  it('changes limits: the same leases, the same fill ratio, the new rate', async () => {
    const world = newWorld();
    void world.store.settle(wanting(40));
    await world.time.runUntil(0.5);
    world.store.changeLimits(scaled(QUOTA.figures, 0.5));
    const { cluster, apps, leases } = world.store.ledger.peek()!;
    expect(held(world)).toBe(40);
    expect([...leases.keys()]).toEqual(['1:a']);
    expect(cluster.level / 1e6).toBe(60);
    expect(apps[0]!.room / 1e6).toBeCloseTo(960, 0);
    const spend = { ...wanting(0, 2), apps: [{ ...wanting(0).apps[0]!, used: 40 }] };
    void world.store.settle(spend);
    await world.time.runUntil(0.52);
    const before = world.store.ledger.peek()!.cluster;
    const { level, lastMicros } = { ...before };
    void world.store.settle(wanting(0, 3));
    await world.time.runUntil(0.56);
    const flowed = world.store.ledger.peek()!.cluster.level - level;
    expect(flowed / (before.lastMicros - lastMicros)).toBeCloseTo(500, 6);
  });
});

describe('a host that dies', () => {
  it('neither runs its timers nor hears an answer', async () => {
    const world = newWorld();
    const host = new Host('n', '1', world);
    let heard = 0;
    host.clock.after(10, () => heard++);
    host.clock.every(10, () => heard++);
    host.settle(wanting(1)).then(
      () => heard++,
      () => heard++,
    );
    host.isAlive = false;
    await world.time.runUntil(1);
    expect(heard).toBe(0);
  });
});

describe('a fleet', () => {
  function fleetOf(slots: number): { fleet: SimulatedFleet; served: string[]; seen: Observations } {
    const served: string[] = [];
    const seen = new Observations();
    const make = ({ nodeId, incarnation }: Host): LimiterNode => ({
      request: () => {
        served.push(`${nodeId}:${incarnation}`);
        return served.length % 2 === 1;
      },
      leave: () => Promise.resolve(),
    });
    const fleet = new SimulatedFleet(newWorld(), make, seen, 1);
    for (let slot = 0; slot < slots; slot++) fleet.join(slot);
    return { fleet, served, seen };
  }

  it('sends requests past slots that are empty, and a slot that joins again is another process', () => {
    const { fleet, served, seen } = fleetOf(3);
    fleet.crash(1);
    fleet.request(1, 0);
    fleet.leave(2);
    fleet.request(1, 0);
    fleet.join(1);
    fleet.request(1, 0);
    expect(served).toEqual(['n2:3', 'n0:1', 'n1:4']);
    expect(seen.offeredAt).toHaveLength(3);
    expect(seen.admittedAt).toHaveLength(2);
  });

  it('without any process has nobody to ask, and counts nothing', () => {
    const { fleet, seen } = fleetOf(1);
    fleet.crash(0);
    fleet.request(0, 0);
    expect(seen.offeredAt).toEqual([]);
  });
});
