import { type PageFrame } from '../../lib/dashboard/frame.js';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { stopAll } from '../support/processes.js';
import { until } from '../support/until.js';
import { RunningSample } from './running-sample.js';

beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
afterAll(stopAll);

const addressIn = ({ written }: RunningSample): string =>
  /http:\/\/127\.0\.0\.1:\d+/.exec(written)![0];

const frameOf = async (address: string): Promise<PageFrame> =>
  (await (await fetch(`${address}/weir/api/state`)).json()) as PageFrame;

async function press(address: string, name: string): Promise<string> {
  const answer = await fetch(`${address}/weir/api/actions/${encodeURIComponent(name)}`, {
    method: 'POST',
    body: '{}',
    headers: { 'content-type': 'application/json', 'x-weir-request': '1', origin: address },
  });
  return ((await answer.json()) as { said: string }).said;
}

/** Of the fleet, once a frame shows it. */
const seen = (address: string, what: string, holds: (frame: PageFrame) => boolean) =>
  until(
    async () => {
      const frame = await frameOf(address);
      return holds(frame) ? frame : undefined;
    },
    { what, timeoutMs: 60_000, intervalMs: 250 },
  );

const rateOf = ({ state }: PageFrame): number =>
  state.series.find(({ name }) => name === 'total')?.rate ?? 0;

describe('the tour', () => {
  it('is a shop of three nodes on Redis, whose buttons do what they say', async () => {
    const sample = await RunningSample.start('00-tour', { REDIS_URL: '', PORT: '0' }, 'Ctrl-C');
    const address = addressIn(sample);
    expect(await (await fetch(address)).text()).toMatch(/href="weir\/"/);
    const quiet = await seen(address, 'traffic on three nodes', (frame) => {
      return frame.nodes.length === 3 && rateOf(frame) > 100;
    });
    expect(quiet.state.quota!.apps.map(({ app }) => app).sort()).toEqual([
      ...['checkout', 'reports', 'search'],
    ]);
    expect(quiet.actions.map(({ name }) => name)).toEqual([
      ...['Burst', 'Store away', 'Overload', 'Slow database', 'Promo day', 'Undo'],
    ]);

    await press(address, 'Burst');
    await seen(address, 'search that is turned away', ({ state }) => {
      return state.quota!.apps.some(({ app, denied }) => app === 'search' && denied > 50);
    });

    expect(await press(address, 'Promo day')).toMatch(/^Revision \d+ is written/);
    const promo = await seen(address, 'the profile', ({ change }) => change?.profile === 'promo');
    expect(await press(address, 'Undo')).toMatch(/has what revision \d+ had/);
    await seen(address, 'the profile before', ({ change }) => {
      return change!.profile === 'normal' && change!.revision > promo.change!.revision;
    });

    await press(address, 'Slow database');
    await seen(address, 'answers that are not the normal ones', ({ state }) => {
      return state.resources.some(
        ({ resource, phase }) => resource === 'product-page' && phase !== 'normal',
      );
    });

    await press(address, 'Store away');
    const away = await seen(address, 'nodes without Redis', ({ state }) => {
      return state.store!.awayNodes > 0;
    });
    expect(away.verdict.text).toMatch(/^Redis is away/);
    await seen(address, 'Redis again', ({ state }) => state.store!.awayNodes === 0);

    expect(await sample.stop()).toBe(0);
    await expect(fetch(address)).rejects.toThrow();
    // That the database is slow is told as an error, as it should be; nothing else is one.
    expect(sample.written).not.toMatch(/ExceptionsHandler|Unhandled|TypeError/);
  });

  it('is one node where there is no Redis, and says why it cannot be away', async () => {
    const env = { REDIS_URL: '', REDIS_SERVER_BIN: '', PORT: '0' };
    const sample = await RunningSample.start('00-tour', env, 'Ctrl-C');
    const address = addressIn(sample);
    const { nodes, storeKind } = await seen(address, 'traffic', (frame) => rateOf(frame) > 50);
    expect([nodes.length, storeKind]).toEqual([1, 'memory']);
    expect(await press(address, 'Store away')).toMatch(/cannot be away/);
    expect(await sample.stop()).toBe(0);
  });
});
