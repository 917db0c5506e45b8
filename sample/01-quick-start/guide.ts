import { type Guide } from '../support/serve.js';
import { askAtOnce, seeBurst, type Tour } from '../support/tour.js';

export const guide: Guide = { command: 'npm start', welcome, tour };

function welcome(address: string): string {
  const status = `curl -s -o /dev/null -w '%{http_code} '`;
  return `
Listening on ${address} (Ctrl-C ends it). Try in another terminal:

# Five requests in ten seconds for each address: the sixth is told 429 and when to come back.
for i in 1 2 3 4 5 6 7; do ${status} ${address}/hello; done; curl -si ${address}/hello

# Three in the last ten seconds for each user, ten for those of the tier "vip".
for tier in normal vip; do for i in 1 2 3 4 5; do ${status} -H 'x-user: ada' -H "x-tier: $tier" ${address}/report; done; echo $tier; done

# Five at once, let through one every half second: "place" is the order in which they came.
seq 5 | xargs -P 5 -I{} curl -s -w '\\n' ${address}/orders/{}
`;
}

async function tour(address: string, tour: Tour): Promise<void> {
  tour.scene('An address asks for /hello seven times at once');
  const hello = await askAtOnce(7, `${address}/hello`);
  seeBurst(tour, '5 in 10 s, then 429', hello, { burst: 5, rate: 0.5 });

  tour.scene('A user asks for five reports, first as anybody, then as a VIP');
  const reports = (tier: string): ReturnType<typeof askAtOnce> =>
    askAtOnce(5, `${address}/report`, () => ({ 'x-user': 'ada', 'x-tier': tier }));
  seeBurst(tour, '3 in the last 10 s', await reports('normal'), { burst: 3, rate: 0 });
  seeBurst(tour, '10 in the last 10 s', await reports('vip'), { burst: 10, rate: 0 });

  tour.scene('Five orders come at once');
  const startedMs = performance.now();
  const left = await Promise.all(
    [1, 2, 3, 4, 5].map(async (id) => {
      const response = await fetch(`${address}/orders/${id}`);
      const { place } = (await response.json()) as { place: number };
      return { place, atMs: performance.now() - startedMs };
    }),
  );
  left.sort((a, b) => a.atMs - b.atMs);
  const first = left[0]!.place;
  tour.see(
    'one every 500 ms, in the order in which they came',
    left.map(({ place, atMs }) => `number ${place} after ${atMs.toFixed(0)} ms`).join(', '),
    // A timer may be a millisecond early.
    left.every(({ place, atMs }, n) => place === first + n && atMs > n * 500 - 20),
  );
}
