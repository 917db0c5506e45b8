import { type Guide } from '../support/serve.js';
import { askAtOnce, seeBurst, type Tour } from '../support/tour.js';

export const guide: Guide = { command: 'npm run sample:microservices', welcome, tour };

function welcome(address: string): string {
  const status = `curl -s -o /dev/null -w '%{http_code} '`;
  return `
A gateway on ${address}, and a service behind it (Ctrl-C ends both). Try in another terminal:

# Two quotes a second for each tenant, three at once: then 429, which the service has said over TCP.
for i in 1 2 3 4 5; do ${status} ${address}/quotes/acme/lamp; done; curl -si ${address}/quotes/acme/lamp

# The same, but the gateway waits for as long as the service says: all are answered.
seq 6 | xargs -P 6 -I{} curl -s -w '\\n' ${address}/patient-quotes/acme/lamp-{}

# Five visits of a page count in a minute. Events have no answer: the others are dropped, and counted.
for i in 1 2 3 4 5 6 7 8; do ${status} -X POST ${address}/visits/home; done; curl -s ${address}/visits
`;
}

async function tour(address: string, tour: Tour): Promise<void> {
  tour.scene('A tenant asks for 20 quotes at once');
  const quotes = await askAtOnce(20, `${address}/quotes/initech/lamp`);
  seeBurst(tour, '3 at once and 2 a second, then 429', quotes, { burst: 3, rate: 2 });

  tour.scene('Another one asks for 6, and the gateway waits for as long as the service says');
  const patient = await askAtOnce(6, `${address}/patient-quotes/hooli/lamp`);
  tour.see(
    'all are answered: the last three come back at 2 a second, which takes 1.5 s',
    `${patient.allowed} of 6 in ${patient.seconds.toFixed(2)} s`,
    patient.allowed === 6 && patient.seconds > 1.45,
  );

  tour.scene('A page is visited eight times');
  await Promise.all(
    Array.from({ length: 8 }, () => fetch(`${address}/visits/start`, { method: 'POST' })),
  );
  const { pages, dropped } = await visitsOf(address);
  tour.see(
    'five visits of a page count in a minute; the others are dropped, and counted',
    `${pages.start} counted, ${dropped} dropped`,
    pages.start === 5 && dropped === 3,
  );
}

interface Visits {
  readonly pages: Readonly<Record<string, number>>;
  readonly dropped: number;
}

/** Events have no answer: whether all have come is seen by what became of them. */
async function visitsOf(address: string): Promise<Visits> {
  const untilMs = performance.now() + 5000;
  for (;;) {
    const visits = (await (await fetch(`${address}/visits`)).json()) as Visits;
    const known = (visits.pages.start ?? 0) + visits.dropped;
    if (known >= 8 || performance.now() > untilMs) return visits;
  }
}
