import { type PageFrame } from '../../lib/dashboard/frame.js';
import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { keepScreenshot, openPage } from '../support/browser.js';
import { stopAll } from '../support/processes.js';
import { until } from '../support/until.js';
import { RunningSample } from './running-sample.js';
import { Callers, Visitor, worstExcess, type Answer } from './tour-visitor.js';

beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
afterAll(stopAll);

const WAYS = {
  'in one process, without Redis': { args: [], env: { REDIS_SERVER_BIN: '/nowhere' } },
  'in three processes, on Redis': { args: ['--redis'], env: {} },
} as const;

/** The process waited for the machine: for longer than its callers make up for. */
const HELD_UP_MS = 75;

/** What shop.module.ts says of reports in the profile promo, and of all in it while Redis is away: 0.9 of the promise. */
const PROMO_CEILING = 60;
const PROMO_SHARES = {
  checkout: (180 * 0.9) / 3,
  search: (140 * 0.9) / 3,
  reports: (20 * 0.9) / 3,
};
/** Twice the ceiling and more, and less than what overloads the cluster. */
const REPORTS_PER_SECOND = 150;

/**
 * A refusal is none. These callers come in bunches where the machine is busy, and a bunch may overload the cluster: then
 * they are told 503, and when to come again.
 */
const isError = ({ status, body }: Answer): boolean =>
  status >= 500 && !body.includes('"code":"OVERLOADED"');

interface Loss {
  readonly app: string;
  readonly used: number;
  /** Of what it asked for, what was denied. */
  readonly part: number;
  /** Tokens per second beyond its promise. */
  readonly lent: number;
}

/** Of each app, over all of these seconds. */
function losses(frames: readonly PageFrame[]): Loss[] {
  return frames[0]!.state.quota!.apps.map(({ app }) => {
    const seen = frames.map(({ state }) => state.quota!.apps.find((one) => one.app === app)!);
    const mean = (of: (one: (typeof seen)[number]) => number): number =>
      seen.reduce((sum, one) => sum + of(one), 0) / seen.length;
    const [used, denied] = [mean((one) => one.used), mean((one) => one.denied)];
    const lent = used - mean(({ guaranteed }) => guaranteed);
    return { app, used, part: denied / Math.max(1, used + denied), lent };
  });
}

const names = (all: readonly Loss[]): string[] => all.map(({ app }) => app);
const byPart = (frames: readonly PageFrame[]): string[] =>
  names(losses(frames).sort((one, other) => one.part - other.part));
const byLent = (frames: readonly PageFrame[]): string[] =>
  names(losses(frames).sort((one, other) => other.lent - one.lent));

const appOf = ({ state }: PageFrame, name: string) =>
  state.quota!.apps.find(({ app }) => app === name)!;
const productPage = ({ state }: PageFrame) =>
  state.resources.find(({ resource }) => resource === 'product-page');

describe('the tour', () => {
  it.concurrent.each(Object.entries(WAYS))(
    '%s: each button does what it says, on the page',
    async (way, { args, env }) => {
      const settings = { ...env, REDIS_URL: '', PORT: '0' };
      const sample = await RunningSample.start('00-tour', settings, 'Ctrl-C', args);
      const [address] = /http:\/\/127\.0\.0\.1:\d+/.exec(sample.written)!;
      const started = await sample.descendants();
      // On Redis that with what ends it, and the nodes.
      expect(started).toHaveLength(args.length === 0 ? 0 : 6);
      const nodes = await until(async () => {
        const welcome = await (await fetch(address)).text();
        const found = [...welcome.matchAll(/href="(http:.*?)\/weir\/"/g)].map(([, one]) => one!);
        return found.length === 3 ? found : undefined;
      });

      const { page, complaints } = await openPage(`${address}/weir/`);
      const visitor = Visitor.at(page, address);
      const callers = new Callers();
      await visitor.sees('.fleet header p', /^3 nodes/);
      await visitor.told('traffic on three nodes', ({ nodes: all, scope }) => {
        return scope === 'fleet' && all.length === 3 && all.every(({ rate }) => rate >= 50);
      });
      await visitor.sees('.store h3', /Redis answers/);
      await visitor.sees('.verdict', /3 nodes decide/);

      // A button's effect lasts for some seconds: all that is to be seen of it is looked for at once.
      const [burst] = await visitor.pressUntil(
        'Burst',
        Promise.all([
          visitor.told('denials of search', (frame) => appOf(frame, 'search').denied > 50),
          visitor.sees('.flow-picture g:has(> rect.box.hot)', /search/),
          visitor.sees('.flow-picture g:has(path.spill)', /search.*turned away/),
          visitor.sees('.keys tr', /^search.*app quota/),
          visitor.sees('.verdict', /Search (?:is limited|loses most)/),
        ]),
      );
      // A process that has to wait for its turn finds its requests in a bunch, which may be larger than its lease. In one
      // process all wait together, callers too, and the Redis in it is as late as the process was.
      const [checkout, search] = ['checkout', 'search'].map((name) => {
        return losses([burst]).find(({ app }) => app === name)!;
      }) as [Loss, Loss];
      expect(checkout.part).toBeLessThan(search.part / 4);
      const lateMs = burst.state.series.find(({ name }) => name === 'store')?.p99Ms ?? Infinity;
      const most = lateMs < HELD_UP_MS ? 0 : 0.03;
      if (args.length === 0) expect(checkout.part).toBeLessThanOrEqual(most);
      await keepScreenshot(page, `tour-burst ${way}`);

      // A page that was held up by a busy machine is on its own way back, and would keep calls from the database.
      await visitor.told('a page that is well', (frame) =>
        frame.state.resources.every(({ phase }) => (phase ?? 'normal') === 'normal'),
      );
      const products = nodes.map((node) => `${node}/products/1`);
      const askProducts = async (): Promise<void> => {
        for (const answer of await Promise.all(products.map((url) => callers.ask(url)))) {
          expect(answer.status).toBe(200);
          expect(answer.body).toMatch('Product 1');
        }
      };
      await askProducts();
      const beforeSlow = visitor.frames.length;
      const said = await visitor.press('Promo day', /Revision \d+ is written/);
      const [promo] = /\d+/.exec(said)!.map(Number);
      await Promise.all([
        // Search gets more as long as it asks for more.
        visitor.pressAgainUntil(
          'Burst',
          visitor.told('more for search', (frame) => appOf(frame, 'search').used > 220),
        ),
        visitor.sees('.flow-picture text', / · ceiling 280$/),
        visitor.sees('.flow-picture text', / · ceiling 60$/),
        visitor.sees('.change dd', /^promo$/),
        visitor.sees('.change dd', /^on all nodes$/),
        visitor.sees('header a', /^revision \d+ on all nodes$/),
        visitor.sees(
          '.verdict',
          /Revision \d+ by tour is in force on all nodes: .*search promised 100 → 140/,
        ),
        visitor.sees('.fleet header p', /3 on revision/),
        visitor.pressUntil(
          'Slow database',
          Promise.all([
            visitor.sees('.resource-list li', /catalog-db\s*breaker open/),
            visitor.sees('.resource-list li', /product-page\s*degraded/),
            visitor.told('answers of the caches', ({ state }) =>
              state.series.some(({ name, degraded: [shared, own] }) => {
                return name === 'resource:product-page' && shared + own > 5;
              }),
            ),
          ]),
        ),
      ]);
      await askProducts();

      const paths = ['checkout', 'search?q=lamp', 'reports', 'products/1'];
      const others = callers.keepAsking(
        nodes.flatMap((node) => paths.map((path) => `${node}/${path}`)),
        20,
      );
      const reports = callers.keepAsking(
        nodes.map((node) => `${node}/reports`),
        REPORTS_PER_SECOND,
      );
      await visitor.pressUntil(
        'Store away',
        Promise.all([
          visitor.sees('.verdict', /^.?Redis is away/),
          visitor.sees('.store h3', /away/),
          visitor.sees('.flow-picture text', /of this node's share of 54$/),
          ...nodes.map((node) =>
            visitor.toldBy(node, 'a node on its own', ({ shares, state }) => {
              expect(shares).toEqual(PROMO_SHARES);
              return state.quota!.apps.every(({ modes, used }) => modes.offline === 1 && used >= 1);
            }),
          ),
        ]),
      );
      await askProducts();
      await keepScreenshot(page, `tour-away ${way}`);
      await Promise.all([
        visitor.sees('.store h3', /Redis answers/),
        visitor.sees('.resource-list li', /on the way back/),
      ]);
      const { state } = await visitor.told('three nodes again', ({ nodes: all, scope }) => {
        return scope === 'fleet' && all.every(({ rate, storeIsUp }) => storeIsUp && rate >= 50);
      });
      // What happened is still to be seen in the charts.
      const happened = state.marks.map(({ text }) => text).join();
      expect(happened).toMatch(/breaker of catalog-db opens/);
      expect(happened).toMatch(/Redis is away.*Redis answers again/);
      const ofReports = await reports();
      const all = [...ofReports, ...(await others())];
      expect(all.find(isError)).toBeUndefined();
      const admitted = ofReports.filter(({ status }) => status === 200);
      expect(worstExcess(admitted, PROMO_CEILING)).toBeLessThanOrEqual(0);
      const { resources } = await visitor.told('the end of the way back', (frame) => {
        return productPage(frame)?.phase === 'normal';
      });
      const percents = visitor.frames
        .slice(beforeSlow)
        .map(productPage)
        .flatMap((one) => (one?.phase === 'ramp' ? [one.percent!] : []));
      // A stage may begin and end between two frames of a busy machine; the node counts all that it has come to.
      const seen = [...new Set(percents)];
      expect(seen).toEqual([10, 30, 50, 100].filter((percent) => seen.includes(percent)));
      const { stages } = resources.find(({ resource }) => resource === 'product-page')!;
      expect(stages).toEqual([10, 30, 50, 100]);

      const undone = await visitor.press('Undo', /has what revision \d+ had/);
      await visitor.sees('.change dd', /^normal$/);
      await visitor.sees('.flow-picture text', / · ceiling 200$/);
      const history =
        await visitor.ask<{ revision: number; kind: string; by: string }[]>('history');
      const rollback = Number(/\d+/.exec(undone)![0]);
      expect(history.slice(0, 2)).toMatchObject([
        { revision: rollback, kind: 'rollback', by: 'tour' },
        { revision: promo, kind: 'update', by: 'tour' },
      ]);

      const [overload] = await visitor.pressUntil(
        'Overload',
        Promise.all([
          visitor.allTold('an overload that all feel', 5, ({ state: { quota } }) => {
            return quota!.overloaded && quota!.apps.filter(({ denied }) => denied > 5).length >= 2;
          }),
          visitor.sees('.verdict', /of capacity asked for\. \w+ loses most/),
        ]),
      );
      expect(byPart(overload)[0]).toBe('checkout');
      expect(byLent(overload)).toEqual(['checkout', 'search', 'reports']);
      expect(complaints).toEqual([]);

      expect(await sample.stop()).toBe(0);
      for (const pid of started) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
      await expect(fetch(address)).rejects.toThrow();
      // That the database is slow is told as an error, as it should be; nothing else is one.
      expect(sample.written).not.toMatch(/ExceptionsHandler|Unhandled|TypeError/);
    },
  );
});
