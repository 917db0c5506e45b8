import { join } from 'node:path';
import { type Alert } from '../../lib/observability/alerts/alert.js';
import { decodeMerged } from '../../lib/observability/fleet/merged.js';
import { type FleetState } from '../../lib/observability/state.js';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { startRedis, stopAll, until, withRedis } from '../support/index.js';
import { exited, spawnOwned } from '../support/processes.js';

const MAIN = join(root, 'build/test/observability/process/main.js');

describe('three processes on one Redis', () => {
  beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
  afterAll(stopAll);

  it('tell of an alert once, also where the one that told is killed', async () => {
    const redis = await startRedis();
    const told: { readonly by: string; readonly alert: Alert }[] = [];
    const start = String(Date.now());
    const processes = new Map(
      ['a', 'b', 'c'].map((name) => {
        const child = spawnOwned(process.execPath, [MAIN, name, redis.url, start], {
          stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
        });
        child.on('message', (alerts: Alert[]) => {
          for (const alert of alerts) told.push({ by: name, alert });
        });
        return [name, child];
      }),
    );
    const merged = (): Promise<FleetState | undefined> =>
      withRedis(redis.port, async (client) => {
        const text = await client.get('weir:{monitor}:merged');
        return text === null ? undefined : (decodeMerged(text) as FleetState);
      });
    const fired = (): string[] =>
      told.filter(({ alert }) => alert.rule === 'breakerOpen').map(({ alert }) => alert.state);
    await until(() => fired().length > 0, { what: 'the alert' });
    expect(told[0]!.alert).toMatchObject({ series: 'resource:db', state: 'firing' });
    await until(async () => (await merged())?.nodes.length === 3, { what: 'all three' });
    const { leader } = (await merged())!;
    expect(told[0]!.by).toBe(leader);
    const child = processes.get(leader)!;
    child.kill('SIGKILL');
    await exited(child);
    // Its term is over: else that takes five seconds, on the clock of Redis.
    await withRedis(redis.port, (client) => client.del('weir:{monitor}:lead'));
    const seen = new Set<number>();
    // The next one goes on with what it was told, and looks again and again.
    await until(
      async () => {
        const state = await merged();
        const isOther = state !== undefined && state.leader !== leader;
        if (isOther && isFiring(state)) seen.add(state.atMs);
        return seen.size >= 5;
      },
      { what: 'five looks of another leader' },
    );
    expect(fired()).toEqual(['firing']);
  });
});

const isFiring = ({ alerts }: FleetState): boolean =>
  alerts.some(({ rule, state }) => rule === 'breakerOpen' && state === 'firing');
