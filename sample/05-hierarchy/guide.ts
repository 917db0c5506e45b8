import { type Guide } from '../support/serve.js';
import { type Tour } from '../support/tour.js';

/** What app.module.ts says. */
const CAPACITY = 100;
const APPS = {
  checkout: { guaranteed: 40, burst: 80 },
  search: { guaranteed: 20, burst: 50 },
} as const;
/** What the cluster takes at once after a rest: `burstRatio`, but 100 at least. */
const BURST = 100;

/** Each process is asked so many times a second, for so long. */
const ASKED_PER_SECOND = 80;
const SECONDS = 4;

/** The processes: two of checkout, one of search. */
export function guideTo(addresses: readonly string[]): Guide {
  const command = 'npm run sample:hierarchy';
  return {
    command,
    welcome: () => welcome(addresses),
    tour: (_, tour) => takeTour(addresses, tour),
  };
}

function welcome([first, second, third]: readonly string[]): string {
  // One curl for many requests: a program for each would be slower than the limits are.
  const many = (address: string | undefined): string =>
    `curl -s -o /dev/null -w '%{http_code}\\n' '${address}/work?n=[1-400]'`;
  const counted = '| sort | uniq -c';
  return `
checkout on ${first} and ${second}, search on ${third} (Ctrl-C ends all).
The cluster takes 100 requests a second: checkout is sure of 40 and may have 80, search of 20 and 50.

# Both processes of checkout together have what checkout has, not each.
(${many(first)} & ${many(second)}; wait) ${counted}

# Search has its share all the same.
${many(third)} ${counted}

# What the store knows about all of them.
curl -s ${first}/status
`;
}

type App = keyof typeof APPS;

async function takeTour([first, second, third]: readonly string[], tour: Tour): Promise<void> {
  const processes: { app: App; address: string }[] = [
    { app: 'checkout', address: first! },
    { app: 'checkout', address: second! },
    { app: 'search', address: third! },
  ];
  tour.scene(`Each of three processes is asked ${ASKED_PER_SECOND} times a second`);
  const admitted = processes.map(() => Array<number>(SECONDS + 1).fill(0));
  const startedMs = performance.now();
  await paced(async () => {
    await Promise.all(
      processes.map(async ({ address }, n) => {
        const { ok } = await fetch(`${address}/work`);
        const second = Math.floor((performance.now() - startedMs) / 1000);
        if (ok) admitted[n]![Math.min(second, SECONDS)]! += 1;
      }),
    );
  });
  const seconds = (performance.now() - startedMs) / 1000;

  const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
  const [one, two, search] = admitted as [number[], number[], number[]];
  console.log('  second  checkout       search  together, of 100');
  for (let second = 0; second < SECONDS; second++) {
    const row = [one, two, search].map((counts) => counts[second]!);
    const [a, b, c] = row.map((count) => String(count).padStart(3));
    const note = second === 0 ? ' and what has gathered before' : '';
    console.log(`  ${second + 1}       ${a} + ${b}      ${c}     ${sum(row)}${note}`);
  }

  const all = sum(admitted.map(sum));
  const most = Math.floor(CAPACITY * seconds + BURST);
  tour.see(
    `${CAPACITY} a second for all, and ${BURST} that have gathered before`,
    `${all} in ${seconds.toFixed(1)} s, of ${most}; ${perSecond(all - BURST, seconds)} a second`,
    all <= most,
  );
  for (const [app, count] of [
    ['checkout', sum(one) + sum(two)],
    ['search', sum(search)],
  ] as const) {
    const { guaranteed, burst } = APPS[app];
    tour.see(
      `${app}: ${guaranteed} a second for sure, ${burst} at most`,
      `${perSecond(count, seconds)} a second`,
      // Less one second for what is leased; and after a rest one second more. A busy machine answers later,
      // and nobody asks for more meanwhile.
      count >= guaranteed * (SECONDS - 1) && count <= burst * (seconds + 1),
    );
  }
  tour.see(
    'one quota for both processes of checkout, and a part of it for each',
    `${sum(one)} and ${sum(two)}`,
    sum(one) > 0 && sum(two) > 0,
  );
}

const perSecond = (count: number, seconds: number): string => (count / seconds).toFixed(0);

/** A machine that had no time for longer than this makes up for no more. */
const LONGEST_BACKLOG_SECONDS = 0.05;

/** Asks at a steady pace, whether there are answers or not; resolves when all are there. */
async function paced(ask: () => Promise<void>): Promise<void> {
  const underWay: Promise<void>[] = [];
  let lastMs = performance.now();
  let elapsed = 0;
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const nowMs = performance.now();
      elapsed += Math.min((nowMs - lastMs) / 1000, LONGEST_BACKLOG_SECONDS);
      lastMs = nowMs;
      const due = Math.min(elapsed, SECONDS) * ASKED_PER_SECOND;
      while (underWay.length < due) underWay.push(ask());
      if (elapsed < SECONDS) return;
      clearInterval(timer);
      resolve();
    }, 10);
  });
  await Promise.all(underWay);
}
