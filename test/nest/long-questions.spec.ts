import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { runToEnd } from '../setup/run-to-end.js';
import { startRedis, stopAll } from '../support/index.js';

/** Of 14 KB each, and of 90 KB: 4 MB and more are sent, and a third of it would be too much. */
const [URLS, BODIES] = [300, 50];
const MOST_BYTES = 1_400_000;

const ATTACKS = [
  ['express', 'GET plain', ['GET degraded', 'GET limited'], URLS],
  ['express', 'POST plain', ['POST degraded', 'POST limited'], BODIES],
  ['express', 'GraphQL plain', ['GraphQL limited'], BODIES],
  ['fastify', 'GET plain', ['GET degraded', 'GET limited'], URLS],
  ['fastify', 'POST plain', ['POST degraded', 'POST limited'], BODIES],
  ['redis', 'GET plain', ['GET degraded', 'GET leased', 'GET denied'], URLS],
  ['grpc', 'Nothing', ['All'], BODIES],
  ['tcp', 'plain', ['degraded'], BODIES],
] as const;

interface Left {
  readonly wire: string;
  readonly route: string;
  /** Beyond what the same questions leave of a route that nobody limits. */
  readonly bytes: number;
}

describe('what is remembered of long questions', () => {
  let left: readonly Left[];

  /** In a process of its own: what the tests have in memory is not meant. */
  beforeAll(async () => {
    await ensureBuilt();
    const args = ['--expose-gc', 'build/test/nest/long-questions/main.js', JSON.stringify(ATTACKS)];
    const env = { REDIS_URL: (await startRedis()).url };
    const { code, stdout, stderr } = await runToEnd(process.execPath, args, { cwd: root, env });
    expect([code, stderr]).toEqual([0, '']);
    const lines = stdout.trim().split('\n');
    left = lines.map((line) => JSON.parse(line) as Left);
  }, BUILD_TIMEOUT_MS);

  afterAll(stopAll);

  it.each(ATTACKS.flatMap(([wire, , routes]) => routes.map((route) => [wire, route])))(
    'does not grow with their length: %s, %s',
    (wire, route) => {
      const { bytes } = left.find((one) => one.wire === wire && one.route === route)!;
      expect(bytes).toBeLessThan(MOST_BYTES);
    },
  );
});
