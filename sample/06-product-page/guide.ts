import { type RecoveryStats } from 'nestjs-weir';
import { type Guide } from '../support/serve.js';
import { type Tour } from '../support/tour.js';

export function guideTo(redisUrl: string | undefined): Guide {
  const command = 'npm run sample:degradation';
  return { command, welcome: (address) => welcome(address, redisUrl), tour };
}

function welcome(address: string, redisUrl: string | undefined): string {
  const turn = (switches: string): string =>
    `curl -s -o /dev/null -H 'content-type: application/json' -d '${switches}' ${address}/switches`;
  const look = (id: number, user = 'ada'): string =>
    `curl -s -o /dev/null -D - -H 'x-user: ${user}' ${address}/products/${id}`;
  const store = redisUrl ? `on Redis` : 'in memory; REDIS_URL=redis://… puts it on Redis';
  return `
Open ${address} in a browser (Ctrl-C ends it). Shared state is ${store}.
Everything is on that page; in a terminal the same is:

# Level 0: all four services answer.
${look(1)}

# Level 1: over the limit, so the answer of a moment ago, from the store.
${turn('{"limit":"small"}')}; for i in 1 2 3 4 5; do ${look(1)} | grep -i degraded; done; ${turn('{"limit":"large"}')}

# Level 2: from the cache of this process, as when Redis is away.
${turn('{"operator":"force 2"}')}; ${look(1)}; ${turn('{"operator":"resume"}')}

# Level 3: the reviews are dead, and nobody has asked for this product before.
${turn('{"reviews":"dead"}')}; ${look(2)}

# Level 4: so is the base information.
${turn('{"base":"dead"}')}; ${look(3)}

# And the way back, by probes and 10, 30, 50, 100 %, while somebody asks.
${turn('{"base":"normal","reviews":"normal"}')}; for i in $(seq 300); do ${look(1)} | grep -i degraded; sleep 0.1; done; curl -s ${address}/state
`;
}

interface State {
  readonly recovery: RecoveryStats;
}

/** Products that nobody has asked for have numbers from here on. */
const UNKNOWN = 500_000;
const WARM_UP = 50;
const LONGEST_RECOVERY_MS = 120_000;

async function tour(address: string, tour: Tour): Promise<void> {
  let unknown = UNKNOWN;
  const turn = async (switches: Readonly<Record<string, string>>): Promise<void> => {
    await fetch(`${address}/switches`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(switches),
    });
  };
  const look = async (id: number): Promise<{ level: number; told: string; fields: number }> => {
    const response = await fetch(`${address}/products/${id}`, { headers: { 'x-user': 'guide' } });
    const fields = Object.keys((await response.json()) as object).length;
    const degraded = response.headers.get('x-degraded');
    const level = Number(/level=(\d)/.exec(degraded ?? '')?.[1] ?? 0);
    return { level, fields, told: `${response.status} ${degraded ?? 'nothing degraded'}` };
  };
  const see = (promised: string, level: number, seen: Awaited<ReturnType<typeof look>>): void =>
    tour.see(
      `level ${level}: ${promised}`,
      `${seen.told}, ${seen.fields} fields`,
      seen.level === level,
    );

  tour.scene('All four services answer');
  // The first request of a process is its slowest.
  let seen = await look(1);
  for (let n = 0; n < WARM_UP && seen.level > 0; n++) seen = await look(1);
  see('the whole page', 0, seen);

  tour.scene('A user asks ten times at once and has two a second');
  await turn({ limit: 'small' });
  const answers = await Promise.all(Array.from({ length: 10 }, () => look(1)));
  see('the answer of a moment ago, for as many as are over the limit', 1, answers.at(-1)!);
  await turn({ limit: 'large' });

  tour.scene('An operator says: from the cache of this process');
  await turn({ operator: 'force 2' });
  see('the whole page, and how old it is', 2, await look(1));
  await turn({ operator: 'resume' });

  tour.scene('The reviews are dead, and no cache knows the product');
  await turn({ reviews: 'dead' });
  see('what nobody can do without', 3, await look(unknown++));

  tour.scene('The base information is dead as well');
  await turn({ base: 'dead' });
  see('words, and 503', 4, await look(unknown++));

  tour.scene('Both are back while somebody asks');
  const recoveryOf = async (): Promise<RecoveryStats> =>
    ((await (await fetch(`${address}/state`)).json()) as State).recovery;
  // A few failures are not yet a page that is degraded.
  while ((await recoveryOf()).phase === 'normal') await look(unknown++);
  const startedMs = performance.now();
  await turn({ base: 'normal', reviews: 'normal' });
  let recovery = await recoveryOf();
  let last = '';
  while (recovery.phase !== 'normal' && performance.now() - startedMs < LONGEST_RECOVERY_MS) {
    const stage = recovery.phase === 'ramp' ? `ramp, ${recovery.percent} %` : recovery.phase;
    const atMs = performance.now() - startedMs;
    if (stage !== last) console.log(`  ${(atMs / 1000).toFixed(1).padStart(5)} s  ${stage}`);
    last = stage;
    await look(1);
    recovery = await recoveryOf();
  }
  const stages = recovery.stages.map(({ percent }) => percent).join(', ');
  tour.see(
    'back by itself, by probes and then 10, 30, 50, 100 %',
    `${recovery.phase} after ${((performance.now() - startedMs) / 1000).toFixed(1)} s, by ${stages} %`,
    recovery.phase === 'normal' && stages === '10, 30, 50, 100',
  );
  see('the whole page', 0, await look(1));
}
