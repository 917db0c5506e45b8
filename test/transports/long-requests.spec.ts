import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { runToEnd } from '../setup/run-to-end.js';
import { startRedis, stopAll } from '../support/index.js';

/** Requests for each route, all of them different; 10,000 take half an hour or so. */
const MANY = Number(process.env.LONG_REQUESTS ?? 0);
/** Of 14 KB each, and of 90 KB, twice: 1.4 MB are sent each time at least, and half of it would be too much. */
const [URLS, BODIES] = MANY ? [MANY / 2, MANY / 2] : [100, 16];
const MOST_BYTES = MANY ? 5_000_000 : 700_000;
const TIMEOUT_MS = MANY ? MANY * 1000 : BUILD_TIMEOUT_MS;

const HEADERS = ['early', 'cut', 'cut-chosen', 'by-user', 'varied'].map(
  (route) => `HEADER ${route}`,
);
const ATTACKS = [
  ['express', 'GET plain', ['GET degraded', 'GET limited', 'GET denied'], URLS],
  ['express', 'HEADER plain', HEADERS, URLS],
  ['express', 'POST plain', ['POST degraded', 'POST limited', 'POST denied'], BODIES],
  ['express', 'GraphQL plain', ['GraphQL limited', 'GraphQL cut', 'GraphQL denied'], BODIES],
  ['fastify', 'GET plain', ['GET degraded', 'GET limited'], URLS],
  ['fastify', 'HEADER plain', ['HEADER early', 'HEADER cut'], URLS],
  ['fastify', 'POST plain', ['POST degraded', 'POST limited'], BODIES],
  ['redis', 'GET plain', ['GET degraded', 'GET leased', 'GET denied'], URLS],
  ['redis', 'HEADER plain', ['HEADER cut'], URLS],
  ['redis', 'POST plain', ['POST limited', 'POST denied'], BODIES],
  ['redis', 'GraphQL plain', ['GraphQL limited'], BODIES],
  ['grpc', 'Nothing', ['All', 'Level1', 'Level2', 'Level3'], BODIES],
  ['tcp', 'plain', ['degraded'], BODIES],
] as const;

interface Left {
  readonly wire: string;
  readonly route: string;
  /** Bytes that the first half of the requests has left, and the second. */
  readonly grown: readonly number[];
  /** Bytes that as many requests to a route without limits have left. */
  readonly control: number;
}

/** Memory of requests grows with each half; a cost that comes once is in one of them only. */
function remembered({ grown, control }: Left): number {
  return MANY ? grown[0]! + grown[1]! - control : Math.min(...grown);
}

/** In a process of its own: what the tests have in memory is not meant. */
async function attack(
  attacks: readonly (typeof ATTACKS)[number][],
  env: Readonly<Record<string, string>>,
): Promise<Left[]> {
  const args = [
    '--expose-gc',
    'build/test/transports/long-requests/main.js',
    JSON.stringify(attacks),
  ];
  const { code, stdout, stderr } = await runToEnd(process.execPath, args, { cwd: root, env });
  expect([code, stderr]).toEqual([0, '']);
  const lines = stdout.trim().split('\n');
  return lines.map((line) => JSON.parse(line) as Left);
}

describe('what is remembered of long requests', () => {
  let left: readonly Left[];

  beforeAll(async () => {
    await ensureBuilt();
    const env = { REDIS_URL: (await startRedis()).url };
    const ofExpress = ATTACKS.filter(([wire]) => wire === 'express');
    const ofOthers = ATTACKS.filter(([wire]) => wire !== 'express');
    left = (await Promise.all([ofExpress, ofOthers].map((some) => attack(some, env)))).flat();
  }, TIMEOUT_MS);

  afterAll(stopAll);

  it.each(ATTACKS.flatMap(([wire, , routes]) => routes.map((route) => [wire, route])))(
    'does not grow with their length: %s, %s',
    (wire, route) => {
      const row = left.find((one) => one.wire === wire && one.route === route)!;
      expect(remembered(row)).toBeLessThan(MOST_BYTES);
    },
  );
});
