import { Controller, Get, type ExecutionContext, type INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  createRateLimiter,
  RateLimit,
  RateLimitCost,
  RateLimiter,
  RateLimitModule,
} from 'nestjs-weir';
import { seededRandom } from '../../lib/cli/simulator/engine/seeded-random.js';
import { VirtualStand } from '../support/virtual-stand.js';

/** A request has come to its guard. */
let reached = false;

function costOf(context: ExecutionContext): number {
  reached = true;
  const { headers } = context.switchToHttp().getRequest<{ headers: { 'x-cost': string } }>();
  return Number(headers['x-cost']);
}

@Controller()
class Priced {
  @Get('local')
  @RateLimit('local')
  @RateLimitCost(costOf)
  local(): string {
    return 'ok';
  }

  @Get('closed')
  @RateLimit('closed')
  @RateLimitCost(costOf)
  closed(): string {
    return 'ok';
  }
}

/** More than all requests of a run cost, and no token of it comes back while the test runs. */
const PER_DAY = 200;
const DAY = { rate: PER_DAY, period: '1d', sync: 'exact', key: () => 'k' } as const;
const REQUESTS = 16;
const MOST = 10;

/** An application behind a guard, whose limiter has a store and a time that are virtual. */
class Shop {
  admitted = 0;

  private constructor(
    readonly stand: VirtualStand,
    private readonly app: INestApplication,
    private readonly url: string,
  ) {}

  static async start(): Promise<Shop> {
    const stand = new VirtualStand();
    const { store, machine } = stand;
    const quota = { apps: { shop: { guaranteed: 1e6 } }, maxCost: MOST };
    const policies = { local: DAY, closed: { ...DAY, failureMode: 'closed' as const } };
    const limiter = createRateLimiter({ quota, store, clock: machine.clock, nodeId: 'n1' });
    // Nothing but the limiter has to do with this store.
    Object.defineProperty(limiter, 'redis', { value: undefined });
    const imports = [RateLimitModule.forRoot({ policies, quota, app: 'shop', monitor: false })];
    const module = await Test.createTestingModule({ imports, controllers: [Priced] })
      .overrideProvider(RateLimiter)
      .useValue(limiter)
      .compile();
    const app = module.createNestApplication({ logger: false });
    await app.listen(0, '127.0.0.1');
    await stand.pass(100);
    return new Shop(stand, app, await app.getUrl());
  }

  async ask(mode: string, cost: number): Promise<number> {
    reached = false;
    const answer = fetch(`${this.url}/${mode}`, { headers: { 'x-cost': String(cost) } });
    // Time passes from when the guard looks at the request.
    while (!reached) await new Promise((resolve) => setImmediate(resolve));
    const { status } = await this.stand.run(() => answer);
    if (status === 200) this.admitted += cost;
    return status;
  }

  /** Whole again: what was late has come, and what is owed was told. */
  async recover(mode: string): Promise<void> {
    for (let i = 0; i < 4; i++) {
      await this.stand.comeBack();
      await this.ask(mode, 1);
    }
  }

  close(): Promise<void> {
    this.stand.machine.isAlive = false;
    return this.app.close();
  }
}

type Fault = 'none' | 'late' | 'lost' | 'skipped' | 'doubled' | 'cut' | 'down';
const LATE: readonly Fault[] = ['none', 'late'];
const ALL: readonly Fault[] = ['none', 'late', 'lost', 'skipped', 'doubled', 'cut', 'down'];

function inflict(fault: Fault, { links }: VirtualStand): void {
  if (fault === 'none') return;
  if (fault === 'late') return links.delay(45, 1000);
  if (fault === 'down') {
    links.isDown = true;
    return links.drop();
  }
  for (const one of links.of('n1')) one.nextReply = fault;
}

/** Requests of any cost through faults; what the store has left in the end, and what was admitted. */
async function live(mode: string, faults: readonly Fault[], seed: number) {
  const random = seededRandom(seed);
  const pick = (choices: number): number => Math.floor(random() * choices);
  const shop = await Shop.start();
  const { stand } = shop;
  await shop.ask(mode, 1);
  const statuses = new Set<number>();
  for (let i = 0; i < REQUESTS; i++) {
    inflict(faults[pick(faults.length)]!, stand);
    statuses.add(await shop.ask(mode, 1 + pick(MOST)));
    stand.links.isDown = false;
    stand.links.delay(0, 0);
    await stand.pass(pick(300));
  }
  await shop.recover(mode);
  const left = await stand.inStore(mode, PER_DAY);
  await shop.close();
  return { left, admitted: shop.admitted, statuses: [...statuses].sort() };
}

describe('requests of any cost behind a guard', () => {
  it.each([
    ['local', 1],
    ['local', 2],
    ['closed', 3],
    ['closed', 4],
  ])(
    'pay what they cost, no less and no more, where answers are late: %s, seed %d',
    async (mode, seed) => {
      const { left, admitted, statuses } = await live(mode, LATE, seed);
      expect(statuses).toEqual(mode === 'closed' ? [200, 429] : [200]);
      expect(left).toBe(PER_DAY - admitted);
    },
  );

  it.each([
    ['local', 5],
    ['local', 6],
    ['local', 7],
    ['closed', 8],
    ['closed', 9],
  ])('pay no less where replies are lost, cut or doubled: %s, seed %d', async (mode, seed) => {
    const { left, admitted } = await live(mode, ALL, seed);
    expect(left).toBeLessThanOrEqual(PER_DAY - admitted);
    expect(admitted).toBeGreaterThan(0);
  });
});
